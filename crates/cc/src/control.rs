//! The trait every sender-side algorithm implements.

use crate::{Ack, Cause, Conn};
use fanin_units::{Duration, Rate, Time};

/// cwnd and ssthresh in packets; infinite ssthresh means "not yet known".
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Congestion window. Real-valued; the sender uses its integer part.
    pub cwnd: f64,
    /// Slow-start threshold.
    pub ssthresh: f64,
}

impl Window {
    /// Slow start goes on while cwnd is below ssthresh (RFC 5681 section 3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// With cwnd at most `limit`, if there is one: the end of a loss recovery.
    pub fn capped(self, limit: Option<f64>) -> Window {
        Window { cwnd: limit.map_or(self.cwnd, |l| self.cwnd.min(l)), ..self }
    }

    /// As one of Linux's reductions ends, which are to two segments at least (`tcp_reno_ssthresh`, `tcp_end_cwnd_reduction`): so also where it began with
    /// the one that a timeout leaves.
    pub fn after_reduction(self) -> Window {
        Window { cwnd: self.cwnd.max(self.ssthresh.min(2.0)), ..self }
    }

    /// A reduction is taken back: what was before it, but what has grown since is kept.
    pub fn restored(self, before: Window) -> Window {
        Window { cwnd: self.cwnd.max(before.cwnd), ssthresh: self.ssthresh.max(before.ssthresh) }
    }
}

/// The window before the last reduction, to which an undo goes back.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PriorWindow(Option<Window>);

impl PriorWindow {
    /// A reduction of `window` begins. A repeated one, of a window that was reduced for the same loss before, changes nothing.
    pub fn remember(&mut self, window: Window, repeated: bool) {
        if !repeated {
            self.0 = Some(window);
        }
    }

    /// Takes the last reduction back, once.
    pub fn restore(&mut self, window: &mut Window) {
        if let Some(before) = self.0.take() {
            *window = window.restored(before);
        }
    }
}

/// A curve that leads a window towards the size at which the last loss occurred, as CUBIC's does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum GrowthCurve {
    /// The algorithm grows along none.
    None,
    /// There was no loss yet.
    Undefined,
    /// Since the last reduction; both in packets.
    Towards {
        /// The window where the curve begins.
        start: f64,
        /// The window at the last loss.
        w_max: f64,
    },
}

/// The decision in force, read at every opportunity to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Control {
    /// Congestion window in packets.
    pub cwnd: f64,
    /// Slow-start threshold in packets.
    pub ssthresh: f64,
    /// Pace at this rate (wire bits per second); `None` sends as ACKs allow.
    pub pacing: Option<Rate>,
}

impl From<Window> for Control {
    fn from(w: Window) -> Control {
        Control { cwnd: w.cwnd, ssthresh: w.ssthresh, pacing: None }
    }
}

/// What host and network must provide; checked before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// ECN-capable packets, the receiver echoing each mark as DCTCP's does (RFC 8257 section 3.2), and a marking switch.
    pub dctcp_ecn: bool,
    /// Fills [`Conn::uniform`].
    pub randomness: bool,
    /// Fills [`Ack::rate`].
    pub rate_samples: bool,
    /// [`CongestionControl::before_send`] is called.
    pub send_hook: bool,
    /// [`CongestionControl::segment_size`] is called.
    pub segment_sizes: bool,
    /// [`CongestionControl::on_empty_ack`] is called.
    pub empty_acks: bool,
    /// The window counts bytes even where the stack's counts packets (TCPRand on ns-3).
    pub byte_window: bool,
    /// The loss recovery that belongs to the algorithm's name; `None` takes the stack's.
    pub recovery: Option<RecoveryKind>,
    /// Its RTT samples must not contain a receiver's delayed ACKs: every packet is acknowledged (Linux: `ip route ... quickack 1`).
    pub quickack: bool,
    /// The algorithm decides for itself what idleness means; the stack's window validation is off.
    pub handles_idle: bool,
    /// The algorithm sets its window in every state, also while losses are repaired: the stack neither reduces it proportionally (RFC 6937)
    /// nor sets it to one segment after a timeout (Linux: `cong_control`).
    pub controls_recovery: bool,
    /// It is told of every ACK while data are outstanding, also of one that delivers nothing, and when the state of the loss machine is
    /// settled: after [`CongestionControl::on_congestion`] and the like (Linux: `cong_control`).
    pub settled_acks: bool,
    /// It is no congestion control of TCP's but a transport of its own, carried out by the host's endpoint of this name.
    pub endpoint: Option<&'static str>,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryKind {
    /// Leave fast recovery at the first new ACK (RFC 5681; NS2's TCP/Reno).
    Reno,
    /// Stay until everything outstanding at the loss is acknowledged (RFC 6582).
    NewReno,
    /// Scoreboard and pipe (RFC 6675).
    Sack,
    /// Loss by distance below the highest SACK (FACK, SIGCOMM 1996) with proportional rate reduction: Linux from 3.2 until RACK came with 4.4.
    Fack,
    /// Loss by time and tail-loss probes (RFC 8985) with proportional rate reduction (RFC 6937): Linux.
    Rack,
}

impl RecoveryKind {
    /// The receiver reports what arrived beyond a hole (RFC 2018), and the sender uses it.
    pub fn uses_sack(self) -> bool {
        matches!(self, RecoveryKind::Sack | RecoveryKind::Fack | RecoveryKind::Rack)
    }

    /// It is one of Linux's with SACK, which reduces proportionally and takes back what was a mistake.
    pub fn is_linux(self) -> bool {
        matches!(self, RecoveryKind::Fack | RecoveryKind::Rack)
    }
}

/// Whether a new segment may leave now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// Send it.
    Go,
    /// Ask again at this time, or after the next ACK if that comes first.
    HoldUntil(Time),
    /// Ask again after the next ACK.
    HoldForAck,
}

/// Receives an algorithm's named internals when they are traced.
pub trait Probe {
    /// One value, in the unit its name states.
    fn value(&mut self, name: &'static str, value: f64);
}

/// One sender's policy: how much may be in flight, and how fast.
///
/// A pure state machine. It has no clock, no randomness and no I/O: all it may know is in the event. It is the only writer of
/// its window; the extra allowance of a loss recovery (NewReno's inflation, PRR) is the sender's and never touches cwnd.
pub trait CongestionControl: core::fmt::Debug + Send {
    /// What host and network must provide. Constant over the connection's life.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// New data was delivered. Called before [`Self::on_congestion`] when one ACK does both, unless [`Needs::settled_acks`] is set.
    fn on_ack(&mut self, conn: &Conn, ack: &Ack);

    /// An ACK delivered nothing: a duplicate without news, or one that came while nothing was outstanding, as that in each request does.
    /// Linux tells its modules of these as of others (`in_ack_event`). Called only when [`Needs::empty_acks`] is set.
    fn on_empty_ack(&mut self, _conn: &Conn) {}

    /// Send less. `Ecn` and `Loss` come at most once per window of data.
    fn on_congestion(&mut self, conn: &Conn, cause: Cause);

    /// Losses within the window of data that an ECN reduction answered, while `window` packets may be outstanding. Most reduce once for both.
    fn on_loss_in_cwr(&mut self, _conn: &Conn, _window: f64) {}

    /// Loss recovery ended; cwnd should not exceed `limit` packets if one is given (RFC 6582 section 3.2 step 3: flight + 1).
    fn on_recovered(&mut self, _conn: &Conn, _limit: Option<f64>) {}

    /// The last reduction was a mistake (D-SACK, Eifel, F-RTO): take it back.
    fn on_undo(&mut self, _conn: &Conn) {}

    /// Window validation (RFC 5681 section 4.1, RFC 2861, RFC 7661) asks for this window after `idle` without sending.
    fn on_restart(&mut self, conn: &Conn, idle: Duration, to: Window);

    /// A new (not retransmitted) segment is about to leave, `since_last` after the previous transmission of data (`None`: the
    /// first). Called only when [`Needs::send_hook`] is set, once per segment until it returns [`Gate::Go`].
    fn before_send(&mut self, _conn: &Conn, _since_last: Option<Duration>) -> Gate {
        Gate::Go
    }

    /// Payload bytes of the next new segment, at most `conn.mss`. Called only when [`Needs::segment_sizes`] is set.
    fn segment_size(&mut self, conn: &Conn) -> u32 {
        conn.mss
    }

    /// The decision in force.
    fn control(&self) -> Control;

    /// The curve along which the window grows: TCPRand's adaptive rule reads it.
    fn growth_curve(&self) -> GrowthCurve {
        GrowthCurve::None
    }

    /// Named internals for traces. Called only when a trace was asked for.
    fn observe(&self, _probe: &mut dyn Probe) {}
}

/// A replacement for the growth below ssthresh; composes with every window-based algorithm (`gss+dctcp`).
pub trait SlowStart: core::fmt::Debug + Send {
    /// Grows `window` for this ACK, not past ssthresh, and returns the acknowledged segments left over for congestion avoidance.
    ///
    /// Called for every ACK with `ack.may_grow` while in slow start; with `grow` false only to keep estimates current.
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, grow: bool) -> u32;
    /// The window was reduced or restarted by something else.
    fn reset(&mut self, conn: &Conn);
    /// See [`Needs::quickack`].
    fn needs_quickack(&self) -> bool {
        false
    }
    /// The window this slow start begins with, in packets, where it has one of its own; otherwise the stack's holds.
    fn initial_window(&self) -> Option<f64> {
        None
    }

    /// No slow start was asked for: an algorithm that has its own may use that.
    fn is_standard(&self) -> bool {
        false
    }
}
