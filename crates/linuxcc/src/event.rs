//! What an algorithm is told, as data: the kernel's side makes it, tells it, and may write it down.
//!
//! Fields are those of [`fanin_cc`]'s types of the same purpose, times in picoseconds.
#![allow(missing_docs)]

use crate::receiver;
use alloc::vec::Vec;
use fanin_cc::{Ack, Cause, CongestionControl, Conn, Gate, Message, RateSample, State, Window};
use fanin_units::{Duration, Time};
use serde::{Deserialize, Serialize};

/// What a [`Conn`] says at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnSnapshot {
    pub now_ps: u64,
    pub mss: u32,
    pub srtt_ps: u64,
    pub min_rtt_ps: u64,
    pub snd_una: u64,
    pub snd_nxt: u64,
    pub in_flight: u32,
    pub lost: u32,
    pub loss_basis: f64,
    pub cwnd_limited: bool,
    /// As Linux counts: Open, Disorder, CWR, Recovery, Loss.
    pub state: u8,
    /// The message that is being sent, if there is one.
    pub message: Option<Sending>,
    pub next_send_ps: u64,
    pub uniform: f64,
}

/// Where a message begins, what of it was never sent, and until when it should be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sending {
    pub start: u64,
    pub unsent: u64,
    pub deadline_ps: Option<u64>,
}

impl ConnSnapshot {
    fn conn(&self) -> Conn {
        let mut conn = Conn::new(self.mss);
        conn.now = Time::from_ps(self.now_ps);
        conn.srtt = Duration::from_ps(self.srtt_ps);
        conn.min_rtt = Duration::from_ps(self.min_rtt_ps);
        conn.snd_una = self.snd_una;
        conn.snd_nxt = self.snd_nxt;
        conn.in_flight = f64::from(self.in_flight);
        conn.loss_basis = self.loss_basis;
        conn.lost = u64::from(self.lost);
        // Not told: an empty pipe counts as the application's.
        conn.app_limited = true;
        conn.cwnd_limited = self.cwnd_limited;
        conn.state = match self.state {
            0 => State::Open,
            1 => State::Disorder,
            2 => State::Cwr,
            3 => State::Recovery,
            _ => State::Loss,
        };
        conn.message = self.message.map(|m| Message {
            unsent: m.unsent,
            sent: self.snd_nxt.saturating_sub(m.start),
            deadline: m.deadline_ps.map(Time::from_ps),
            start: m.start,
        });
        conn.next_send = Time::from_ps(self.next_send_ps);
        conn.uniform = self.uniform;
        conn
    }
}

/// An [`Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub acked_bytes: u64,
    pub acked_segments: u32,
    pub delivered_bytes: u64,
    pub delivered_segments: u32,
    pub ece: bool,
    pub rtt_ps: Option<u64>,
    pub maybe_delayed: bool,
    pub ack_seq: u64,
    pub may_grow: bool,
    pub newly_lost: u32,
    pub prior_in_flight: u32,
    /// Delivered, delivered before, delivered in all, interval in ps, application-limited.
    pub rate: Option<(u32, u64, u64, u64, bool)>,
}

impl Delivery {
    fn ack(&self) -> Ack {
        let mut ack = Ack::of(self.acked_segments, 1, self.ack_seq, self.rtt_ps.map(Duration::from_ps));
        ack.acked_bytes = self.acked_bytes;
        ack.delivered_bytes = self.delivered_bytes;
        ack.delivered_segments = self.delivered_segments;
        ack.ece = self.ece;
        ack.maybe_delayed = self.maybe_delayed;
        ack.may_grow = self.may_grow;
        ack.newly_lost = self.newly_lost;
        ack.prior_in_flight = f64::from(self.prior_in_flight);
        ack.rate = self.rate.map(|(delivered, prior_delivered, total_delivered, interval, app_limited)| RateSample {
            delivered,
            prior_delivered,
            total_delivered,
            interval: Duration::from_ps(interval),
            app_limited,
        });
        ack
    }
}

/// A call of [`CongestionControl`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    Ack(Delivery),
    Ecn,
    Loss,
    LossInCwr { window: u32 },
    Timeout { repeated: bool },
    Recovered,
    Undo,
    Restart { idle_ps: u64, cwnd: f64, ssthresh: f64 },
    BeforeSend { since_last_ps: Option<u64> },
    SegmentSize,
    EmptyAck,
}

/// What an event was answered with, where it has an answer: hold until (ps; all bits: for an ACK), or a size.
pub type Answer = Option<u64>;

/// The answer that the next ACK is to be awaited.
pub const HOLD_FOR_ACK: u64 = u64::MAX;

/// Tells an algorithm what happened.
pub fn notify_cc(cc: &mut dyn CongestionControl, snapshot: &ConnSnapshot, event: &Event) -> Answer {
    let conn = snapshot.conn();
    match *event {
        Event::Ack(delivery) => cc.on_ack(&conn, &delivery.ack()),
        Event::EmptyAck => cc.on_empty_ack(&conn),
        Event::Ecn => cc.on_congestion(&conn, Cause::Ecn),
        Event::Loss => cc.on_congestion(&conn, Cause::Loss),
        Event::LossInCwr { window } => cc.on_loss_in_cwr(&conn, f64::from(window)),
        Event::Timeout { repeated } => cc.on_congestion(&conn, Cause::Timeout { repeated }),
        Event::Recovered => cc.on_recovered(&conn, None),
        Event::Undo => cc.on_undo(&conn),
        Event::Restart { idle_ps, cwnd, ssthresh } => {
            cc.on_restart(&conn, Duration::from_ps(idle_ps), Window { cwnd, ssthresh });
        }
        Event::BeforeSend { since_last_ps } => {
            return match cc.before_send(&conn, since_last_ps.map(Duration::from_ps)) {
                Gate::Go => None,
                Gate::HoldUntil(time) => Some(time.ps()),
                Gate::HoldForAck => Some(HOLD_FOR_ACK),
            };
        }
        Event::SegmentSize => return Some(u64::from(cc.segment_size(&conn))),
    }
    None
}

/// One call, and the decision afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Position of the algorithm among the kernel's programs.
    pub program: u32,
    /// Number of the connection's end, from 0.
    pub socket: u32,
    pub conn: ConnSnapshot,
    pub event: Event,
    pub answer: Answer,
    /// `control()` afterwards, in packets and bit/s.
    pub cwnd: f64,
    pub ssthresh: f64,
    pub pacing_bps: Option<u64>,
    /// `snd_cwnd` that Linux is given; none where the window is Linux's for now (PRR).
    pub snd_cwnd: Option<u32>,
}

/// What is written down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Noted {
    /// Of a sender.
    Sender(Note),
    /// Of a receiving host.
    Receiver(receiver::Note),
}

impl Noted {
    /// Its length in two bytes, then itself.
    pub fn write(&self) -> Vec<u8> {
        // Plain data into growing memory: nothing in it can fail.
        let body = postcard::to_allocvec(self).unwrap_or_default();
        let mut bytes = Vec::with_capacity(body.len() + 2);
        bytes.extend_from_slice(&(body.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// All notes of a file; none where it is cut or is no such file.
    pub fn read_all(mut bytes: &[u8]) -> Option<Vec<Noted>> {
        let mut notes = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_le_bytes(*length));
            notes.push(postcard::from_bytes(rest.get(..length)?).ok()?);
            bytes = &rest[length..];
        }
        Some(notes)
    }
}
