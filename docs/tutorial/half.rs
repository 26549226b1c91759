//! Half a packet per round trip, half the window on loss.

use crate::algorithms::reno::{RenoCore, as_reno};
use crate::{Ack, Algorithm, Cause, CongestionControl, Conn, Kind, Window};
use fanin_units::Duration;

/// `half`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "half",
    title: "Half: as Reno, but half a packet per round trip",
    source: "the tutorial",
    ..Algorithm::of(Kind::Sender(|setup, _, slow_start| Ok(Box::new(Half { core: RenoCore::new(setup, slow_start) }))))
}];

#[derive(Debug)]
struct Half {
    core: RenoCore,
}

impl CongestionControl for Half {
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.core.on_ack(conn, ack, 0.5);
    }
    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        self.core.on_congestion(conn, cause);
    }
    as_reno!();
    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.core.on_restart(conn, to);
    }
}
