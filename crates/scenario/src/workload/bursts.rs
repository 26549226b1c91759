//! Background bursts on the ports towards the receivers, with lengths and gaps as measured in a data centre.

use super::WorkloadKind;
use crate::draw::Draw;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::rng::Stream;
use fanin_sim::spec::{Cbr, NodeId};
use fanin_units::{Bytes, Rate, Setting, Time};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "bursts",
    title: "bursts of datagrams on the port of each receiver, with measured lengths and gaps; each comes from one sender, drawn at random",
    source: "Zhang et al., High-Resolution Measurement of Data Center Microbursts, IMC 2017, section 5 (racks of web servers)",
    keys: KEYS,
    tcp: false,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    Setting::times("length", "how long a burst is sent").default("imc17_burst_length"),
    Setting::times("gap", "from the end of a burst to the start of the next").default("imc17_burst_gap"),
    Setting::rate("rate", "of a burst, headers included; the slowest link's of receiver and senders unless set"),
    Setting::size("packet", "bytes of a packet on the wire").default("1500B").positive(),
    Setting::time("stop", "nothing is sent from here on; the end of the run unless set"),
];

/// More bursts than this are a mistake.
const MAX_BURSTS: f64 = 1e6;

/// What all bursts have in common.
struct Bursts {
    length: Draw,
    gap: Draw,
    packet: Bytes,
    stop: Time,
}

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let packet: Bytes = reader.get("packet")?;
    if packet.get() > 65_535 {
        return Err(reader.refuse("packet", format!("{packet} is too long; a packet has at most 65535 bytes")));
    }
    let stop = workload.stop(reader, "stop", workload.start)?.unwrap_or(workload.plan.end);
    let bursts = Bursts { length: reader.get("length")?, gap: reader.get("gap")?, packet, stop };
    let wanted: Option<Rate> = reader.opt("rate")?;
    let (from, to) = (workload.from(reader)?, workload.to(reader)?);
    let period = bursts.length.expect(|x| x) + bursts.gap.expect(|x| x);
    let expected = stop.since(workload.start).ps() as f64 / period.max(1.0) * to.len() as f64;
    if expected > MAX_BURSTS {
        let message =
            format!("about {expected:.0} bursts would be sent, and {MAX_BURSTS:.0} are the most; shorten the run");
        return Err(reader.refuse("gap", message));
    }
    for (n, &receiver) in to.iter().enumerate() {
        let senders: Vec<NodeId> = from.iter().copied().filter(|&h| h != receiver).collect();
        if senders.is_empty() {
            return Err(reader.refuse("from", "the only sender is the receiver itself"));
        }
        let rate = rate(reader, workload, wanted, &senders, receiver)?;
        let [lengths, gaps, places] = ["length", "gap", "place"].map(|of| workload.stream(of, n as u64));
        bursts.add(workload, &senders, receiver, rate, (lengths, gaps, places));
    }
    Ok(())
}

/// A burst's rate: what the sender's link cannot carry would reach the port later, as a longer burst.
fn rate(
    reader: &Reader<'_>,
    workload: &Workload<'_>,
    wanted: Option<Rate>,
    senders: &[NodeId],
    receiver: NodeId,
) -> Result<Rate, ScenarioError> {
    let net = &workload.plan.net;
    let incoming = net.host_rate(receiver, true);
    let Some(&slowest) = senders.iter().min_by_key(|&&h| net.host_rate(h, false)) else { return Ok(incoming) };
    let most = net.host_rate(slowest, false);
    match wanted {
        Some(rate) if rate > most => {
            let name = &net.nodes[slowest.index()].name;
            Err(reader.refuse("rate", format!("it is {rate}, and the link of `{name}` carries {most}; use less")))
        }
        Some(rate) => Ok(rate),
        None => Ok(most.min(incoming)),
    }
}

impl Bursts {
    /// All bursts on the port of one receiver.
    fn add(
        &self,
        workload: &mut Workload<'_>,
        senders: &[NodeId],
        receiver: NodeId,
        rate: Rate,
        (mut lengths, mut gaps, mut places): (Stream, Stream, Stream),
    ) {
        let class = workload.class;
        let mut start = workload.start;
        loop {
            start += self.gap.time(&mut gaps);
            if start >= self.stop {
                return;
            }
            // What is shorter than a packet is one packet.
            let end = start + self.length.time(&mut lengths).max(self.packet / rate);
            let src = senders[places.below(senders.len() as u64) as usize];
            let stop = end.min(self.stop);
            workload.plan.cbr.push(Cbr { src, dst: receiver, rate, packet: self.packet, start, stop, class });
            start = end;
        }
    }
}
