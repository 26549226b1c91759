//! The same events told to a fresh algorithm: does it decide the same?

use crate::event::{Note, notify_cc};
use crate::{Program, event::Answer};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use fanin_cc::CongestionControl;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Connections' ends that heard anything.
    pub sockets: usize,
    /// Events.
    pub events: usize,
    /// Of them ACKs.
    pub acks: usize,
    /// The first decision that differs, as a sentence.
    pub difference: Option<String>,
}

/// Tells fresh algorithms what those in the kernel were told, and compares every decision with theirs: equal to the last bit but for
/// powers, which the kernel takes from another library (one part in 10^9).
pub fn replay(programs: &[Program], notes: &[Note]) -> Replayed {
    let mut found = Replayed::default();
    let mut sockets: BTreeMap<u32, Box<dyn CongestionControl>> = BTreeMap::new();
    for (number, note) in notes.iter().enumerate() {
        let cc = match sockets.entry(note.socket) {
            alloc::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            alloc::collections::btree_map::Entry::Vacant(entry) => {
                let built = programs.get(note.program as usize).map(Program::build);
                let Some(Ok(transport)) = built else {
                    found.difference = Some(format!("event {number} is of program {}, which is none", note.program));
                    return found;
                };
                entry.insert(transport.sender)
            }
        };
        let answer = notify_cc(cc.as_mut(), &note.conn, &note.event);
        let control = cc.control();
        found.events += 1;
        found.acks += usize::from(matches!(note.event, crate::event::Event::Ack(_)));
        if !close(control.cwnd, note.cwnd) || !close(control.ssthresh, note.ssthresh) || !agree(answer, note.answer) {
            found.difference.get_or_insert_with(|| {
                format!(
                    "event {number} ({:?}) of connection {}: the kernel decided cwnd {}, ssthresh {}, {:?}; here cwnd {}, ssthresh {}, {:?}",
                    note.event, note.socket, note.cwnd, note.ssthresh, note.answer, control.cwnd, control.ssthresh, answer
                )
            });
        }
    }
    found.sockets = sockets.len();
    found
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * b.abs()
}

/// Times to the nanosecond: they follow from rates.
fn agree(a: Answer, b: Answer) -> bool {
    a.is_some() == b.is_some() && a.unwrap_or(0).abs_diff(b.unwrap_or(0)) <= 1000
}
