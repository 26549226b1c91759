//! One connection's algorithm between Linux's callbacks.
//!
//! Linux tells of one ACK in parts: what was delivered (`in_ack_event`, once the retransmission queue is cleaned), then perhaps that the
//! window shrinks (`ssthresh`) or may grow (`cong_avoid`). The algorithm is told once: when it is known whether the window may grow, and
//! before anything else happens on the connection.
//!
//! The algorithm is the only writer of its own window. Linux's `snd_cwnd` follows it wherever Linux lets an algorithm write it; during CWR
//! and recovery `snd_cwnd` is Linux's (proportional rate reduction), and after a timeout it begins at what Linux says. What Linux does to
//! `snd_cwnd` by itself after idle time reaches the algorithm as `on_restart`.

// Fields have the names that they have in Linux.
#![allow(missing_docs)]

use crate::Program;
use crate::event::{self, Answer, ConnSnapshot, Delivery, Event, Note, Noted, Sending};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use fanin_cc::{BuildError, CongestionControl, Control, Needs, Window};
use fanin_switch::random::Stream;

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;
/// How often an algorithm is asked in a row whether a segment may leave, when it names times that have passed.
const MOST_ASKS: u32 = 4;
/// Asked in vain: a microsecond later again.
const ASKED_IN_VAIN_NS: u64 = 1_000;

/// A socket as Linux has it just now: `struct fanin_cc_view`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    pub now_ns: u64,
    /// When pacing lets the next segment leave (`tcp_wstamp_ns`).
    pub next_send_ns: u64,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub write_seq: u32,
    pub mss: u32,
    /// In eighths of a microsecond.
    pub srtt_us8: u32,
    pub min_rtt_us: u32,
    pub in_flight: u32,
    /// Segments delivered, and declared lost, so far.
    pub delivered: u32,
    pub lost: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// `icsk_ca_state`.
    pub state: u8,
    /// `tcp_is_cwnd_limited()`.
    pub cwnd_limited: u8,
}

/// What Linux is to write: `struct fanin_cc_out`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    /// 0: leave it.
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Bytes of payload per second; 0: as ACKs allow.
    pub pacing: u64,
}

/// `struct rate_sample`, as far as it goes: `struct fanin_cc_sample`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub interval_us: i64,
    pub delivered: i32,
    pub prior_delivered: u32,
    pub app_limited: u8,
    pub ack_delayed: u8,
}

/// Whether a new segment may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Now.
    No,
    /// Ask again then, or after an ACK; ns.
    Until(u64),
    /// Ask again after an ACK.
    ForAck,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Socket {
    cc: Box<dyn CongestionControl>,
    needs: Needs,
    wire_per_mss: f64,
    random: Stream,
    program: u32,
    number: u32,
    /// Notes of what the algorithm was told; none unless they are wanted.
    notes: Option<Vec<u8>>,
    /// Offset of `snd_una` in the stream, and Linux's number of it.
    una: (u64, u32),
    /// What the last ACK that was told of left: offset, segments delivered and lost.
    counted: (u64, u32, u32),
    /// An ACK that the algorithm was not told of yet, and the socket when it came.
    pending: Option<(View, Delivery)>,
    /// What `snd_cwnd` must be, if only the algorithm wrote it.
    expected: Option<u32>,
    last_event_ns: u64,
    last_sent_ns: Option<u64>,
    /// Offset at which data began to leave an empty pipe.
    message_start: u64,
    /// What the application has said of its messages: first byte, one past the last, deadline in ns. `None` until it says
    /// anything.
    messages: Option<VecDeque<(u64, u64, Option<u64>)>>,
    /// Size of the segment at this offset.
    size: Option<(u64, u32)>,
    held_for_ack: bool,
    reduced_by_timeout: bool,
}

impl Socket {
    /// A connection that was just established. `trace`: keep notes.
    ///
    /// # Errors
    /// As [`Program::build`].
    pub fn new(program: &Program, position: u32, number: u32, view: &View, trace: bool) -> Result<Socket, BuildError> {
        let cc = program.build()?.sender;
        Ok(Socket {
            needs: cc.needs(),
            cc,
            wire_per_mss: program.wire as f64 / f64::from(program.mss.max(1)),
            random: Stream::new(program.seed, "linuxcc", u64::from(number)),
            program: position,
            number,
            notes: trace.then(Vec::new),
            una: (0, view.snd_una),
            counted: (0, view.delivered, view.lost),
            pending: None,
            expected: Some(whole(program.initial_window)),
            last_event_ns: view.now_ns,
            last_sent_ns: None,
            message_start: 0,
            messages: None,
            size: None,
            held_for_ack: false,
            reduced_by_timeout: false,
        })
    }

    /// What the algorithm needs of host and network.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Notes since the last call.
    pub fn take_notes(&mut self) -> Option<Vec<u8>> {
        self.notes.as_mut().filter(|n| !n.is_empty()).map(core::mem::take)
    }

    /// The window to begin with. Linux's own first window differs from the program's after the loss of a SYN.
    pub fn start(&mut self, view: &View) -> Out {
        self.look(view);
        self.decided(true)
    }

    /// An ACK was processed (`in_ack_event`): segments it acknowledged, its round trip in us (negative: none), its ECN echo.
    pub fn ack(&mut self, view: &View, segments: u32, rtt_us: i32, ece: bool) {
        self.settle();
        self.look(view);
        self.held_for_ack = false;
        let (una, delivered) = (self.una.0, view.delivered.wrapping_sub(self.counted.1));
        let acked_bytes = una - self.counted.0;
        if delivered == 0 && acked_bytes == 0 {
            if self.needs.empty_acks {
                self.notify_cc(view, Event::EmptyAck);
            }
            return;
        }
        let delivered_bytes =
            if delivered == segments { acked_bytes } else { u64::from(delivered) * u64::from(view.mss) };
        let delivery = Delivery {
            acked_bytes,
            acked_segments: segments,
            delivered_bytes,
            delivered_segments: delivered,
            ece,
            rtt_ps: u64::try_from(rtt_us).ok().map(|us| us * 1_000_000),
            maybe_delayed: false,
            ack_seq: una,
            may_grow: false,
            newly_lost: 0,
            prior_in_flight: 0,
            rate: None,
        };
        (self.counted.0, self.counted.1) = (una, view.delivered);
        self.pending = Some((*view, delivery));
    }

    /// The window may grow by what this ACK delivered (`cong_avoid`).
    pub fn grow(&mut self, view: &View) -> Out {
        self.look(view);
        if let Some((_, mut delivery)) = self.pending.take() {
            delivery.may_grow = view.cwnd_limited != 0 && delivery.acked_bytes > 0;
            self.deliver(view, delivery);
        }
        self.decided(true)
    }

    /// The ACK's rate sample, for algorithms that decide alone in every state (`cong_control`).
    pub fn control(&mut self, view: &View, sample: &Sample) -> Out {
        self.look(view);
        if let Some((_, mut delivery)) = self.pending.take() {
            // CWR and recovery: 2 and 3.
            delivery.may_grow = !matches!(view.state, 2 | 3) && !delivery.ece && delivery.acked_bytes > 0;
            delivery.maybe_delayed = sample.ack_delayed != 0;
            delivery.rate = (sample.delivered >= 0 && sample.interval_us > 0).then(|| {
                // Counted in 32 bits there.
                let prior = u64::from(view.delivered) - u64::from(view.delivered.wrapping_sub(sample.prior_delivered));
                let interval = sample.interval_us as u64 * 1_000_000;
                (sample.delivered as u32, prior, u64::from(view.delivered), interval, sample.app_limited != 0)
            });
            self.deliver(view, delivery);
        }
        self.decided(true)
    }

    /// Send less (`ssthresh`): for an ECN echo of this ACK, else for a loss. The new threshold.
    pub fn reduce(&mut self, view: &View, by_mark: bool) -> u32 {
        self.flush(view);
        self.notify_cc(view, if by_mark { Event::Ecn } else { Event::Loss });
        self.expected = None;
        whole(self.cc.control().ssthresh)
    }

    /// A recovery begins within an ECN reduction (`set_state` without `ssthresh` before it), which goes on. The threshold: as it was, or lower.
    pub fn loss_in_cwr(&mut self, view: &View) -> u32 {
        self.flush(view);
        self.notify_cc(view, Event::LossInCwr { window: view.cwnd });
        self.expected = None;
        whole(self.cc.control().ssthresh).min(view.ssthresh)
    }

    /// The retransmission timer expired (`ssthresh`). The new threshold.
    pub fn timed_out(&mut self, view: &View) -> u32 {
        self.flush(view);
        self.notify_cc(view, Event::Timeout { repeated: false });
        self.expected = None;
        self.reduced_by_timeout = true;
        whole(self.cc.control().ssthresh)
    }

    /// Linux is in state Loss from here on (`set_state`): without [`Socket::timed_out`] before it the timer expired again.
    pub fn enters_loss(&mut self, view: &View) {
        if core::mem::take(&mut self.reduced_by_timeout) {
            return;
        }
        self.flush(view);
        self.notify_cc(view, Event::Timeout { repeated: true });
        self.expected = None;
    }

    /// A reduction is complete (`CA_EVENT_COMPLETE_CWR`).
    pub fn recovered(&mut self, view: &View) -> Out {
        // After recovery (3); an ECN reduction (2) ends without a word.
        if view.state == 3 {
            self.notify_cc(view, Event::Recovered);
        }
        let Control { cwnd, ssthresh, .. } = self.cc.control();
        let left = Window { cwnd, ssthresh };
        let window = left.after_reduction();
        if window != left {
            self.notify_cc(view, Event::Restart { idle_ps: 0, cwnd: window.cwnd, ssthresh });
        }
        self.decided(true)
    }

    /// The last reduction was a mistake (`undo_cwnd`). The window.
    pub fn undo(&mut self, view: &View) -> u32 {
        self.notify_cc(view, Event::Undo);
        self.decided(true).cwnd
    }

    /// Whether the next new segment may leave.
    pub fn before_send(&mut self, view: &View) -> (Hold, Out) {
        self.settle();
        self.look(view);
        if self.held_for_ack {
            return (Hold::ForAck, Out::default());
        }
        let since = self.last_sent_ns.map(|sent| (view.now_ns - sent.min(view.now_ns)) * 1000);
        for _ in 0..MOST_ASKS {
            let answer = self.notify_cc(view, Event::BeforeSend { since_last_ps: since });
            // During CWR and recovery the window is Linux's.
            let out = self.decided(!matches!(view.state, 2 | 3));
            match answer {
                None => return (Hold::No, out),
                Some(event::HOLD_FOR_ACK) => {
                    self.held_for_ack = true;
                    return (Hold::ForAck, out);
                }
                // That time has passed: what does the algorithm say now?
                Some(time_ps) if time_ps <= view.now_ns * 1000 => {}
                Some(time_ps) => return (Hold::Until(time_ps.div_ceil(1000)), out),
            }
        }
        (Hold::Until(view.now_ns + ASKED_IN_VAIN_NS), Out::default())
    }

    /// Payload bytes of the next new segment.
    pub fn segment_size(&mut self, view: &View) -> u32 {
        self.look(view);
        let at = self.offset(view.snd_nxt);
        match self.size {
            Some((offset, size)) if offset == at => size,
            _ => {
                let size =
                    self.notify_cc(view, Event::SegmentSize).map_or(view.mss, |s| s as u32).clamp(1, view.mss.max(1));
                self.size = Some((at, size));
                size
            }
        }
    }

    /// Data leave, for the first time or again.
    pub fn sent(&mut self, view: &View) {
        self.look(view);
        self.last_sent_ns = Some(view.now_ns);
        if view.snd_una == view.snd_nxt {
            self.message_start = self.una.0;
        }
    }

    /// The application begins to write a message of so many bytes, to be delivered by the deadline in ns.
    pub fn message(&mut self, view: &View, bytes: u64, deadline_ns: Option<u64>) {
        self.look(view);
        let start = self.offset(view.write_seq);
        self.messages.get_or_insert_default().push_back((start, start.saturating_add(bytes), deadline_ns));
    }

    // ---- what Linux does not say ------------------------------------------------------------------------------------

    /// Keeps offsets, and notices that Linux changed the window by itself.
    fn look(&mut self, view: &View) {
        self.una = (self.una.0 + u64::from(view.snd_una.wrapping_sub(self.una.1)), view.snd_una);
        // Open and Disorder: `tcp_cwnd_restart()` and `tcp_cwnd_application_limited()`.
        if let Some(expected) = self.expected
            && view.cwnd != expected
            && view.state <= 1
        {
            let ssthresh = if view.ssthresh >= INFINITE { f64::INFINITY } else { f64::from(view.ssthresh) };
            let idle_ps = (view.now_ns - self.last_event_ns.min(view.now_ns)) * 1000;
            self.notify_cc(view, Event::Restart { idle_ps, cwnd: f64::from(view.cwnd), ssthresh });
            self.expected = Some(view.cwnd);
        }
        self.last_event_ns = view.now_ns;
    }

    /// Tells of an ACK that Linux let nothing grow for, as the socket was then.
    fn settle(&mut self) {
        if let Some((view, delivery)) = self.pending.take() {
            self.deliver(&view, delivery);
        }
    }

    /// As [`Socket::settle`], in the socket's present state: the ACK that now shrinks the window.
    fn flush(&mut self, view: &View) {
        self.look(view);
        // Such an algorithm hears of the ACK afterwards (`cong_control`).
        if self.needs.settled_acks {
            return;
        }
        if let Some((_, delivery)) = self.pending.take() {
            self.deliver(view, delivery);
        }
    }

    fn deliver(&mut self, view: &View, mut delivery: Delivery) {
        delivery.newly_lost = view.lost.wrapping_sub(self.counted.2);
        self.counted.2 = view.lost;
        delivery.prior_in_flight = view.in_flight + delivery.delivered_segments + delivery.newly_lost;
        self.notify_cc(view, Event::Ack(delivery));
    }

    fn offset(&self, seq: u32) -> u64 {
        self.una.0.wrapping_add_signed(i64::from(seq.wrapping_sub(self.una.1) as i32))
    }

    /// The message that is being sent. One that was sent whole is none any more.
    fn sending(&mut self, view: &View, snd_nxt: u64) -> Option<Sending> {
        let Some(messages) = &mut self.messages else {
            let unsent = u64::from(view.write_seq.wrapping_sub(view.snd_nxt));
            return Some(Sending { start: self.message_start, unsent, deadline_ps: None });
        };
        while messages.front().is_some_and(|(_, end, _)| *end <= snd_nxt) {
            messages.pop_front();
        }
        messages.front().map(|&(start, end, deadline_ns)| Sending {
            start,
            unsent: end - snd_nxt.max(start),
            deadline_ps: deadline_ns.map(|ns| ns.saturating_mul(1000)),
        })
    }

    fn notify_cc(&mut self, view: &View, event: Event) -> Answer {
        let own = self.cc.control().cwnd;
        let snd_nxt = self.offset(view.snd_nxt);
        let message = self.sending(view, snd_nxt);
        let conn = ConnSnapshot {
            now_ps: view.now_ns * 1000,
            mss: view.mss,
            srtt_ps: u64::from(view.srtt_us8) * 125_000,
            // Linux's ~0: no sample yet.
            min_rtt_ps: if view.min_rtt_us == u32::MAX { 0 } else { u64::from(view.min_rtt_us) * 1_000_000 },
            snd_una: self.una.0,
            snd_nxt,
            in_flight: view.in_flight,
            lost: view.lost,
            // Linux's reductions are of `snd_cwnd`, which is the algorithm's window in whole packets unless Linux wrote it.
            loss_basis: if whole(own) == view.cwnd { own } else { f64::from(view.cwnd) },
            cwnd_limited: view.cwnd_limited != 0,
            state: view.state,
            message,
            next_send_ps: view.next_send_ns * 1000,
            uniform: if self.needs.randomness { self.random.uniform() } else { 0.0 },
        };
        let answer = event::notify_cc(self.cc.as_mut(), &conn, &event);
        if let Some(notes) = &mut self.notes {
            let control = self.cc.control();
            let reducing = matches!(view.state, 2 | 3) && !self.needs.controls_recovery;
            let note = Note {
                program: self.program,
                socket: self.number,
                conn,
                event,
                answer,
                cwnd: control.cwnd,
                ssthresh: control.ssthresh,
                pacing_bps: control.pacing.map(|rate| rate.bps()),
                snd_cwnd: (!reducing).then(|| whole(control.cwnd)),
            };
            notes.extend_from_slice(&Noted::Sender(note).write());
        }
        answer
    }

    fn decided(&mut self, write: bool) -> Out {
        let control = self.cc.control();
        if !write {
            return Out::default();
        }
        let cwnd = whole(control.cwnd);
        self.expected = Some(cwnd);
        // Linux paces payload; fanin's rate is that of the wire.
        let pacing = control.pacing.map_or(0, |rate| (rate.bps() as f64 / 8.0 / self.wire_per_mss) as u64);
        Out { cwnd, ssthresh: whole(control.ssthresh), pacing }
    }
}

/// Packets as Linux counts them: whole ones, at least one.
fn whole(packets: f64) -> u32 {
    libm::floor(packets.clamp(1.0, f64::from(INFINITE))) as u32
}
