//! Loss and marking on purpose: at random, or of chosen packets. For experiments on recovery and for this crate's own oracles.

use super::{Admission, Build, Context, Decision, Discipline, View};
use crate::packet::{Packet, flags};
use crate::random::Stream;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use fanin_units::{Args, Profile, Setting, SettingError};

const PROBABILITY: Setting =
    Setting::parameter("loss_probability", 0.0, 0.0, 1.0).doc("fanin", "each packet is lost with this probability");
const DROP: Setting = Setting::free_text("loss_of")
    .doc("fanin", "numbers of the data packets to lose at this port, the first is 1: \"1, 5\"");
const MARK: Setting =
    Setting::free_text("mark_of").doc("fanin", "numbers of the data packets to mark at this port: \"3, 4\"");

/// `lossy`.
pub const DISCIPLINE: Discipline = Discipline {
    name: "lossy",
    title: "Loses or marks packets on purpose, at random or by number",
    source: "fanin",
    params: &[PROBABILITY, DROP, MARK],
    marks: false,
    build: Build::Admission(build),
};

fn build(context: &Context, args: &Args) -> Result<Box<dyn Admission>, SettingError> {
    Ok(Box::new(Lossy {
        probability: args.number(&PROBABILITY, Profile::Rfc)?,
        drop: numbers(args, &DROP)?,
        mark: numbers(args, &MARK)?,
        seen: 0,
        random: context.random.clone(),
    }))
}

fn numbers(args: &Args, param: &Setting) -> Result<Vec<u64>, SettingError> {
    let text = args.word(param, Profile::Rfc)?;
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        numbers.push(part.parse().map_err(|_| SettingError::BadValue {
            name: param.name,
            value: text.clone(),
            expected: "packet numbers separated by commas, such as 1, 5".to_owned(),
        })?);
    }
    // In order for the bisection in `admit`.
    numbers.sort_unstable();
    Ok(numbers)
}

#[derive(Debug)]
struct Lossy {
    probability: f64,
    drop: Vec<u64>,
    mark: Vec<u64>,
    /// Data packets that reached the port.
    seen: u64,
    random: Stream,
}

impl Admission for Lossy {
    fn admit(&mut self, packet: &Packet, _view: View) -> Decision {
        // Every kind of packet: ACKs are lost as data are.
        if self.probability > 0.0 && self.random.uniform() < self.probability {
            return Decision::Drop;
        }
        // Numbers count data packets alone.
        if packet.has(flags::ACK | flags::SYN | flags::EMPTY) {
            return Decision::Accept;
        }
        self.seen += 1;
        if self.drop.binary_search(&self.seen).is_ok() {
            Decision::Drop
        // Only what is ECN-capable may be marked (RFC 3168 section 5); the rest passes as it is.
        } else if self.mark.binary_search(&self.seen).is_ok() && packet.has(flags::ECT) {
            Decision::Mark
        } else {
            Decision::Accept
        }
    }
}
