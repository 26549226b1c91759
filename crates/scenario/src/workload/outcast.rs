//! A few near senders against many far ones: whose packets come in by which port decides who is cast out.

use super::WorkloadKind;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{Message, NodeId, Release};
use fanin_units::{Duration, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "outcast",
    title: "long flows from near, middle and far senders to one receiver, in classes of those names",
    source: "TCPRand sections 2 and 6.3",
    keys: KEYS,
    tcp: true,
    one_class: false,
    build,
};

const KEYS: &[Setting] = &[
    Setting::count("near", 0, "flows from the hosts with the fewest links to the receiver").default("1"),
    Setting::count("middle", 0, "flows from the hosts that are neither near nor far").default("0"),
    Setting::count("far", 0, "flows from the hosts with the most links to the receiver").default("12"),
    Setting::time("stop", "nothing new is sent from here on; never unless set"),
    Setting::time("jitter", "each start is delayed by a random time, uniform on [0, this)").default("0s"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let (senders, receiver) = workload.many_to_one(reader)?;
    let hops = workload.plan.net.hops(receiver);
    let distance = |h: &NodeId| hops[h.index()].unwrap_or(u32::MAX);
    let (nearest, farthest) = (senders.iter().map(distance).min(), senders.iter().map(distance).max());
    let group = |test: &dyn Fn(u32) -> bool| senders.iter().copied().filter(|h| test(distance(h))).collect::<Vec<_>>();
    let groups = [
        ("near", group(&|d| Some(d) == nearest)),
        ("middle", group(&|d| Some(d) != nearest && Some(d) != farthest)),
        ("far", group(&|d| Some(d) == farthest && nearest != farthest)),
    ];
    let stop = workload.stop(reader, "stop", workload.start)?;
    let jitter: Duration = reader.get("jitter")?;
    for (name, hosts) in groups {
        let count: usize = reader.get(name)?;
        if count == 0 {
            continue;
        }
        workload.room_for(reader, name, &[count as u64])?;
        if hosts.is_empty() {
            return Err(reader.refuse(name, format!("no sender is {name} in this topology; set `{name} = 0`")));
        }
        workload.class = workload.plan.class(name);
        for n in 0..count {
            // More flows than hosts go round.
            let flow = workload.flow(hosts[n % hosts.len()], receiver);
            workload.plan.flows[flow.index()].stop = stop.into();
            let late = Duration::from_ps(workload.stream(name, n as u64).below(jitter.ps()));
            workload.message(flow, Message::UNLIMITED, Release::At(workload.start + late), None);
        }
    }
    Ok(())
}
