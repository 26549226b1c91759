//! Flows that arrive at random at a given load.

use super::WorkloadKind;
use crate::draw::Draw;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{NodeId, Release};
use fanin_units::{Bytes, Duration, Rate, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "poisson",
    title: "Poisson arrivals at a target load, sizes from a distribution, between random hosts or to one receiver",
    source: "TCPRand section 6.4; pFabric section 5",
    keys: KEYS,
    tcp: true,
    one_class: false,
    build,
};

const KEYS: &[Setting] = &[
    Setting::number(
        "load",
        0.0,
        1.0,
        "offered load, headers included: share of the senders' link rates, or with `to_one` of the receiver's",
    )
    .required()
    .positive(),
    Setting::sizes("size", "bytes of a flow").default("websearch_pfabric"),
    Setting::flag("to_one", "all flows go to the one receiver in `to`, not between random hosts").default("false"),
    Setting::time("stop", "no flow arrives from here on; the end of the run unless set"),
    Setting::size("short_below", "without a `class`, flows are of class short, mid or long by size: below this short")
        .default("100KB"),
    Setting::size("long_from", "from here on it is long").default("10MB"),
];

/// More flows than this are a mistake.
const MAX_FLOWS: f64 = 20e6;

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let load: f64 = reader.get("load")?;
    let size: Draw = reader.get("size")?;
    let (from, to) = hosts(reader, workload)?;
    let capacity = match to.as_slice() {
        &[receiver] => workload.plan.net.host_rate(receiver, true),
        _ => from.iter().fold(Rate::from_bps(0), |sum, &h| {
            Rate::from_bps(sum.bps().saturating_add(workload.plan.net.host_rate(h, false).bps()))
        }),
    };
    let stop = workload.stop(reader, "stop", workload.start)?.unwrap_or(workload.plan.end);
    let split = Split::read(reader, workload)?;

    let stack = &workload.plan.transports[workload.transport as usize].stack;
    let (mss, per_segment) = (u64::from(stack.mss), stack.wire(0).get());
    let wire = |bytes: f64| bytes + ((bytes.max(1.0) / mss as f64).ceil()) * per_segment as f64;
    let arrivals_per_s = load * capacity.bps() as f64 / 8.0 / size.expect(wire);
    let expected = arrivals_per_s * stop.since(workload.start).as_secs();
    if expected > MAX_FLOWS {
        let message =
            format!("about {expected:.0} flows would arrive, and {MAX_FLOWS:.0} are the most; shorten the run");
        return Err(reader.refuse("load", message));
    }

    let mut arrivals = workload.stream("arrival", 0);
    let mut sizes = workload.stream("size", 0);
    let mut places = workload.stream("place", 0);
    let mut time = workload.start;
    loop {
        time += Duration::from_secs(-(1.0 - arrivals.uniform()).ln() / arrivals_per_s);
        if time >= stop {
            return Ok(());
        }
        let bytes = size.bytes(&mut sizes);
        let src = from[places.below(from.len() as u64) as usize];
        let others = to.iter().filter(|&&h| h != src).count() as u64;
        // Every sender has another host to send to: `hosts` looks.
        let Some(&dst) = to.iter().filter(|&&h| h != src).nth(places.below(others) as usize) else { continue };
        if let Some(split) = &split {
            workload.class = split.class(bytes);
        }
        let flow = workload.flow(src, dst);
        workload.message(flow, bytes, Release::At(time), None);
    }
}

fn hosts(reader: &Reader<'_>, workload: &Workload<'_>) -> Result<(Vec<NodeId>, Vec<NodeId>), ScenarioError> {
    if reader.get("to_one")? {
        let (from, to) = workload.many_to_one(reader)?;
        return Ok((from, vec![to]));
    }
    let (from, to) = workload.all_or_named(reader)?;
    match to.as_slice() {
        &[one] if from == [one] => Err(reader.refuse("to", "the only receiver is the only sender")),
        [_] => Err(reader.refuse("to", "it names one host; set `to_one = true` if all flows go there")),
        _ => Ok((from, to)),
    }
}

/// Classes by size.
struct Split {
    short_below: u64,
    long_from: u64,
    classes: [u16; 3],
}

impl Split {
    fn read(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<Option<Split>, ScenarioError> {
        if let Some(name) = reader.opt::<String>("class")? {
            workload.class = workload.plan.class(&name);
            return Ok(None);
        }
        let (short_below, long_from): (Bytes, Bytes) = (reader.get("short_below")?, reader.get("long_from")?);
        if long_from < short_below {
            return Err(reader.refuse("long_from", format!("it is {long_from}, below `short_below` ({short_below})")));
        }
        let classes = ["short", "mid", "long"].map(|name| workload.plan.class(name));
        Ok(Some(Split { short_below: short_below.get(), long_from: long_from.get(), classes }))
    }

    fn class(&self, bytes: u64) -> u16 {
        let [short, mid, long] = self.classes;
        match bytes {
            b if b < self.short_below => short,
            b if b < self.long_from => mid,
            _ => long,
        }
    }
}
