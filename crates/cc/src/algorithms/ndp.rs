//! NDP's first window. What comes after it is the receiver's to pull, so there is no window to control: `ndp` is a transport of its own,
//! whose endpoint is in the simulator (`fanin_sim`, `ndp.rs`).
//!
//! *Source*: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance" (SIGCOMM 2017),
//! section 3.2.
//!
//! *Reading* (docs/algorithms/ndp.md): the paper sets the first window by hand for its network; here it is computed from the path.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Kind, Needs, Setting, SettingError, Setup, SlowStart, Window,
};
use fanin_units::Duration;

const WINDOW: Setting = Setting::parameter("ndp_window", 0.0, 0.0, 1e6).unit("packets").doc(
    "section 3.2",
    "sent at once when a flow begins to send; 0 computes the path's bandwidth-delay product and a switch's eight packets",
);
/// How long an unanswered packet is waited for.
pub const RTO: Setting = Setting::parameter("ndp_rto", 1e-3, 1e-6, 100.0)
    .unit("s")
    .doc("section 3.2", "a packet without any answer is sent again after so long");

/// Packets in the queue of the paper's switch.
const SWITCH_QUEUE: f64 = 8.0;
/// The first window where the path is not known.
const UNKNOWN_PATH: f64 = 30.0;

/// `ndp`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "ndp",
    title: "NDP: receivers pull packets at their link's rate; switches trim what does not fit",
    source: "Handley et al., SIGCOMM 2017",
    params: &[WINDOW, RTO],
    ..Algorithm::of(Kind::Endpoint(build))
}];

fn build(setup: &Setup, args: &Args, _none: Box<dyn SlowStart>) -> Result<Box<dyn CongestionControl>, SettingError> {
    args.number(&RTO, setup.profile)?;
    let packets = match args.number(&WINDOW, setup.profile)? {
        0.0 => setup.path.map_or(UNKNOWN_PATH, |path| {
            // Section 3.2: what fills the path, rate x round trip in packets, and what a switch's queue holds.
            let wire = setup.wire.get().max(1) as f64 * 8.0;
            // 10 Gbps, 12 us and 1500 bytes: 10 packets fill the path, and 8 the queue.
            (path.rate.bps() as f64 * path.base_rtt.as_secs() / wire).ceil() + SWITCH_QUEUE
        }),
        set => set.max(1.0),
    };
    Ok(Box::new(FirstWindow { packets }))
}

/// A window that never changes.
#[derive(Debug)]
struct FirstWindow {
    packets: f64,
}

impl CongestionControl for FirstWindow {
    fn needs(&self) -> Needs {
        Needs { endpoint: Some("ndp"), ..Needs::default() }
    }
    // The receiver asks for each further packet (PULL) at the rate of its link: no event here changes the window.
    fn on_ack(&mut self, _conn: &Conn, _ack: &Ack) {}
    fn on_congestion(&mut self, _conn: &Conn, _cause: Cause) {}
    fn on_restart(&mut self, _conn: &Conn, _idle: Duration, _to: Window) {}
    fn control(&self) -> Control {
        Window { cwnd: self.packets, ssthresh: f64::INFINITY }.into()
    }
}

#[cfg(test)]
mod tests {
    use crate::{PathKnowledge, Setup, registry};
    use fanin_units::{Bytes, Duration, Rate};

    #[test]
    fn the_first_window_fills_the_path_and_a_switch_queue() {
        let path = PathKnowledge { rate: Rate::gbps(10), base_rtt: Duration::us(12), buffer_packets: 8.0 };
        let setup = Setup { wire: Bytes::new(1500), path: Some(path), ..Setup::default() };
        let built = registry::build("ndp", &setup, &crate::Args::default()).unwrap();
        assert_eq!(built.sender.control().cwnd, 18.0);
    }

    #[test]
    fn it_composes_with_nothing() {
        let error = registry::build("gss+ndp", &Setup::default(), &crate::Args::default()).unwrap_err();
        assert_eq!(error.to_string(), "`gss+ndp` does not compose: `ndp` is a transport of its own; name it alone");
    }
}
