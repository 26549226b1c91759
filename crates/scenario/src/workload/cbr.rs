//! Background traffic that does not respond to anything.

use super::{PATTERN, WorkloadKind};
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::Cbr;
use fanin_units::{Bytes, Duration, Rate, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "cbr",
    title: "constant-bit-rate datagrams from every sender",
    source: "TCPRand section 6.1 (UDP background)",
    keys: KEYS,
    tcp: false,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    PATTERN,
    Setting::rate("rate", "of each sender, headers included").required(),
    Setting::size("packet", "bytes of a packet on the wire").default("1500B").positive(),
    Setting::time("stop", "nothing is sent from here on; the end of the run unless set"),
    Setting::flag("spread", "each source begins at a random point of its first interval, not all at once")
        .default("true"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let (rate, packet): (Rate, Bytes) = (reader.get("rate")?, reader.get("packet")?);
    if packet.get() > 65_535 {
        return Err(reader.refuse("packet", format!("{packet} is too long; a packet has at most 65535 bytes")));
    }
    let stop = workload.stop(reader, "stop", workload.start)?.unwrap_or(workload.plan.end);
    let spread: bool = reader.get("spread")?;
    for (n, (src, dst)) in workload.pairs(reader)?.into_iter().enumerate() {
        let late = workload.stream("start", n as u64).below((packet / rate).ps());
        let start = workload.start + if spread { Duration::from_ps(late) } else { Duration::ZERO };
        let class = workload.class;
        workload.plan.cbr.push(Cbr { src, dst, rate, packet, start, stop, class });
    }
    Ok(())
}
