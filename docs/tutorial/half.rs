//! Half a packet per round trip, half the window on loss.

use crate::algorithms::reno::RenoCore;
use crate::{Ack, Algorithm, Cause, CongestionControl, Conn, Control, Kind, Window};
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
    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.core.on_recovered(limit);
    }
    fn on_undo(&mut self, _conn: &Conn) {
        self.core.on_undo();
    }
    fn control(&self) -> Control {
        self.core.window.into()
    }
    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.core.on_restart(conn, to);
    }
}
