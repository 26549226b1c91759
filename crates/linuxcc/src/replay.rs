//! The same events told to a fresh algorithm: does it decide the same?

use crate::Program;
use crate::event::{self, Answer, Note, Noted, notify_cc};
use crate::receiver::{self, Policies, Receivers};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::String;
use fanin_cc::CongestionControl;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Connections' ends: senders that heard anything, and receivers under control.
    pub sockets: usize,
    /// Events.
    pub events: usize,
    /// Of them ACKs at senders and data at receivers.
    pub acks: usize,
    /// The first decision that differs, as a sentence.
    pub difference: Option<String>,
}

/// Tells fresh algorithms what those in the kernel were told, and compares every decision with theirs: equal to the last bit but for
/// powers, which the kernel takes from another library (one part in 10^9).
pub fn replay(programs: &[Program], receivers: &Receivers, notes: &[Noted]) -> Replayed {
    let mut found = Replayed::default();
    let mut sockets: BTreeMap<u32, Box<dyn CongestionControl>> = BTreeMap::new();
    let Ok(mut policies) = receivers.policies() else {
        found.difference = Some("a policy of a receiving host cannot be made".to_owned());
        return found;
    };
    for (number, noted) in notes.iter().enumerate() {
        let difference = match noted {
            Noted::Sender(note) => replay_sender(programs, &mut sockets, note),
            Noted::Receiver(note) => replay_receiver(&mut policies, note),
        };
        found.events += 1;
        found.acks += usize::from(is_packet(noted));
        if let (Some(why), None) = (difference, &found.difference) {
            found.difference = Some(format!("event {number} {why}"));
        }
    }
    found.sockets = sockets.len() + policies.ends();
    found
}

/// An ACK at a sender, or data at a receiver.
fn is_packet(noted: &Noted) -> bool {
    match noted {
        Noted::Sender(note) => matches!(note.event, event::Event::Ack(_)),
        Noted::Receiver(note) => matches!(note.event, receiver::Event::Data { .. }),
    }
}

fn replay_sender(
    programs: &[Program],
    sockets: &mut BTreeMap<u32, Box<dyn CongestionControl>>,
    note: &Note,
) -> Option<String> {
    let cc = match sockets.entry(note.socket) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => match programs.get(note.program as usize).map(Program::build) {
            Some(Ok(transport)) => entry.insert(transport.sender),
            _ => return Some(format!("is of program {}, which is none", note.program)),
        },
    };
    let answer = notify_cc(cc.as_mut(), &note.conn, &note.event);
    let control = cc.control();
    let same = close(control.cwnd, note.cwnd) && close(control.ssthresh, note.ssthresh) && agree(answer, note.answer);
    (!same).then(|| {
        format!(
            "({:?}) of connection {}: the kernel decided cwnd {}, ssthresh {}, {:?}; here cwnd {}, ssthresh {}, {:?}",
            note.event, note.socket, note.cwnd, note.ssthresh, note.answer, control.cwnd, control.ssthresh, answer
        )
    })
}

fn replay_receiver(policies: &mut Policies, note: &receiver::Note) -> Option<String> {
    if note.end as usize >= policies.ends() {
        return Some(format!("is of receiver {}, which is none", note.end));
    }
    let advice = policies.tell(note.end, note.now_ps, &note.event);
    let (window, delay) = (advice.map(|a| a.window), advice.map_or(0, |a| a.ack_delay.ps()));
    (window != note.window || !agree(Some(delay), Some(note.delay_ps))).then(|| {
        format!(
            "({:?}) of receiver {}: the kernel decided {:?} bytes and {} ps, here {window:?} and {delay}",
            note.event, note.end, note.window, note.delay_ps
        )
    })
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * b.abs()
}

/// Times to the nanosecond: they follow from rates.
fn agree(a: Answer, b: Answer) -> bool {
    a.is_some() == b.is_some() && a.unwrap_or(0).abs_diff(b.unwrap_or(0)) <= 1000
}
