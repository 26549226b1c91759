//! Random early detection with the gentle slope (Floyd and Jacobson 1993; Floyd 2000), marking ECN-capable packets instead of
//! dropping them (RFC 3168 section 5).

use super::{Admission, Build, Context, Decision, Discipline, View};
use crate::packet::{Packet, flags};
use crate::random::Stream;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use fanin_units::{Args, Profile, Setting, SettingError};

const MIN: Setting = Setting::parameter("red_min", 5.0, 0.0, 1e9)
    .unit("packets")
    .doc("RED 1993 section 4", "average queue below which nothing is marked or dropped");
const MAX: Setting = Setting::parameter("red_max", 15.0, 0.0, 1e9)
    .unit("packets")
    .doc("RED 1993 section 4", "average queue at which the probability reaches red_max_p");
const MAX_P: Setting =
    Setting::parameter("red_max_p", 0.1, 0.0, 1.0).doc("RED 1993 section 4", "probability at red_max");
const WEIGHT: Setting = Setting::parameter("red_weight", 0.002, 1e-9, 1.0)
    .doc("RED 1993 section 4", "weight of a new sample in the average");
const GENTLE: Setting = Setting::switch("red_gentle", true)
    .doc("Floyd 2000", "rise from red_max_p to 1 between red_max and twice red_max, instead of at once");
const ECN: Setting =
    Setting::switch("red_ecn", true).doc("RFC 3168 section 5", "mark ECN-capable packets instead of dropping");

/// `red`.
pub const DISCIPLINE: Discipline = Discipline {
    name: "red",
    title: "Random early detection, gentle, marking or dropping by the average queue",
    source: "Floyd and Jacobson 1993; RFC 3168",
    params: &[MIN, MAX, MAX_P, WEIGHT, GENTLE, ECN],
    marks: true,
    build: Build::Admission(build),
};

fn build(context: &Context, args: &Args) -> Result<Box<dyn Admission>, SettingError> {
    let number = |p: &Setting| args.number(p, Profile::Rfc);
    let (min, max) = (number(&MIN)?, number(&MAX)?);
    if max < min {
        return Err(SettingError::BadValue {
            name: MAX.name,
            value: max.to_string(),
            expected: format!("at least red_min ({min})"),
        });
    }
    Ok(Box::new(Red {
        min,
        max,
        max_p: number(&MAX_P)?,
        weight: number(&WEIGHT)?,
        gentle: args.flag(&GENTLE, Profile::Rfc)?,
        ecn: args.flag(&ECN, Profile::Rfc)?,
        bits_per_second: context.rate.bps().max(1),
        average: 0.0,
        since_mark: -1.0,
        random: context.random.clone(),
    }))
}

#[derive(Debug)]
struct Red {
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    gentle: bool,
    ecn: bool,
    /// Rate of the port, for the length of an idle period in packets.
    bits_per_second: u64,
    average: f64,
    /// Packets since the last mark or drop while above `min`; -1 below it.
    since_mark: f64,
    random: Stream,
}

impl Red {
    /// Probability before spreading, from the average queue.
    fn probability(&self) -> f64 {
        if self.average < self.max {
            // p_b = max_p (avg - min_th)/(max_th - min_th) (section 4).
            // `admit` asks from min_th on, so max_th is above avg and min_th here, and the divisor is not 0.
            self.max_p * (self.average - self.min) / (self.max - self.min)
        } else if self.gentle && self.average < 2.0 * self.max {
            // Gentle: from max_p at max_th to 1 at twice max_th.
            self.max_p + (1.0 - self.max_p) * (self.average - self.max) / self.max
        } else {
            1.0
        }
    }
}

impl Admission for Red {
    fn admit(&mut self, packet: &Packet, view: View) -> Decision {
        if view.packets == 0 {
            // The paper's idle rule: as many samples of zero as packets like this one could have been sent meanwhile.
            let idle_ps = view.now.saturating_sub(view.free_at) as f64;
            let packets = idle_ps * self.bits_per_second as f64 / (f64::from(packet.bytes) * 8e12);
            self.average *= libm::pow(1.0 - self.weight, packets);
        }
        // avg = (1 - w_q) avg + w_q q (section 4).
        // After an idle time this is one more sample of zero, as NS2's estimator(..., m + 1, ...) takes it.
        self.average += self.weight * (f64::from(view.packets) - self.average);
        if self.average < self.min {
            self.since_mark = -1.0;
            return Decision::Accept;
        }
        self.since_mark += 1.0;
        // p_a = p_b / (1 - count p_b): marks are spread evenly, not in runs (section 7).
        let pb = self.probability();
        let spread = 1.0 - self.since_mark * pb;
        let pa = if spread <= 0.0 { 1.0 } else { (pb / spread).min(1.0) };
        if self.random.uniform() >= pa {
            return Decision::Accept;
        }
        self.since_mark = 0.0;
        // p_b = 1 drops ECN-capable packets too, as sch_red.c does with TC_RED_HARDDROP.
        if self.ecn && packet.has(flags::ECT) && pb < 1.0 { Decision::Mark } else { Decision::Drop }
    }
}
