//! What a kernel cannot do. A limit names the key that asks for it, so that whoever knows the file can say the line.

use crate::algorithms::{Hosts, chosen};
use fanin_cc::Profile;
use fanin_sim::hosts::{HOST_KNOBS, HostModel};
use fanin_sim::knobs::{KNOBS, Knob};
use fanin_sim::queue::Build;
use fanin_sim::resolved_stack;
use fanin_sim::spec::{Cbr, Link, NodeKind, Routing, Spec, TransportSpec};
use fanin_sim::stack::{Coalesce, Stack};
use thiserror::Error;

/// Hosts are network namespaces: more take longer to make than to run.
pub const MAX_HOSTS: usize = 2_000;
/// Local ports of one host, from the fabric's first on.
const MAX_CONNECTIONS: usize = 50_000;

/// Knobs that have a setting in the kernel, or stand for what it does anyway under a name of its own; all others must be as in profile `linux`.
const SETTABLE: &[&str] = &[
    "mss",
    "header",
    "frame_overhead",
    "initial_window",
    "delack_segments",
    "route_quickack",
    "comp_sack_nr",
    "comp_sack_delay",
    "comp_sack_slack",
    "nagle",
    "receive_window",
    "receive_buffer",
    "min_rto",
    "receiver_min_rto",
    "timestamps",
    "ecn",
    "cwnd_validation",
    "recovery",
    "handshake",
    "send_jitter",
    "clock_error_ppm",
    "tso",
];

/// What the virtual kernel does, whatever the profile: its hosts share one clock of known ticks, its cards cut bursts or not, and its links are
/// lines or token buckets.
const OF_THE_VIRTUAL_KERNEL: &[&str] = &["hz", "common_ticks", "tso_whole", "bucket_latency"];

/// Something that a kernel cannot do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {message}")]
pub struct Limit {
    /// Key of the scenario, such as `stack.profile`.
    pub key: String,
    /// One sentence.
    pub message: String,
}

pub(crate) fn limit(key: impl Into<String>, message: impl Into<String>) -> Limit {
    Limit { key: key.into(), message: message.into() }
}

/// Checks a whole plan.
///
/// # Errors
/// [`Limit`] for the first thing that a kernel cannot do.
pub fn check(spec: &Spec, hosts: Hosts) -> Result<(), Limit> {
    check_hosts(&spec.hosts, hosts)?;
    // Buffers of the receiver's own, which cards fill, are merged in the receive queue.
    let coalesce = if spec.hosts.is_ideal() { Coalesce::Acknowledged } else { Coalesce::Always };
    for transport in &spec.transports {
        check_transport(transport, hosts, &Stack { coalesce, ..Stack::linux() })?;
    }
    let count = spec.nodes.iter().filter(|n| n.kind == NodeKind::Host).count();
    if count > MAX_HOSTS {
        return Err(limit("topology", format!("it has {count} hosts; the virtual kernel has at most {MAX_HOSTS}")));
    }
    if spec.links.len() > usize::from(u16::MAX) {
        return Err(limit("topology", "it has more than 65535 ports; use fewer, or the engine sim"));
    }
    if spec.flows.len() > MAX_CONNECTIONS {
        let message =
            format!("{} flows are more than the {MAX_CONNECTIONS} that the virtual kernel takes", spec.flows.len());
        return Err(limit("workload", message));
    }
    if spec.routing == Routing::Spray {
        return Err(limit("topology.routing", "the virtual kernel has one path per flow and direction; use flow-hash"));
    }
    // A scheduler would have to tell of departures later than of arrivals.
    let scheduled = |l: &&Link| matches!(l.queue.discipline.build, Build::Scheduler(_));
    if let Some(link) = spec.links.iter().find(scheduled) {
        let message =
            format!("the virtual kernel's ports are first in, first out, not `{}`", link.queue.discipline.name);
        return Err(limit("topology.queue", message));
    }
    // IP and UDP take 28 bytes.
    let tiny = |c: &&Cbr| c.packet.get() < 29;
    if let Some(cbr) = spec.cbr.iter().find(tiny) {
        return Err(limit("workload.packet", format!("a datagram has at least 29 bytes, not {}", cbr.packet)));
    }
    // A host's MTU follows from its connections; what is larger would leave in fragments.
    let mtu = |t: &TransportSpec| u64::from(t.stack.mss) + t.stack.header.get();
    let least = spec.transports.iter().map(mtu).min().unwrap_or(u64::MAX);
    match spec.cbr.iter().find(|c| c.packet.get() > least) {
        Some(cbr) => {
            let message =
                format!("a datagram of {} is larger than the {least} bytes that `stack.mss` leaves", cbr.packet);
            Err(limit("workload.packet", message))
        }
        None => Ok(()),
    }
}

/// What the virtual kernel's network cards do as they are told (`ethtool -C`, `-K`).
const OF_CARDS: &[&str] =
    &["tso", "gro", "interrupt_delay", "interrupt_frames", "interrupt_gap", "napi_budget", "gro_flush_timeout"];

/// Nothing that a program does takes time in the virtual kernel, and its cards have one receive queue without an end.
fn check_hosts(model: &HostModel, hosts: Hosts) -> Result<(), Limit> {
    if model.is_ideal() {
        return Ok(());
    }
    // Only of a kernel that is fanin's own is it known.
    if hosts.hz.is_none() {
        return Err(limit("hosts", "the hosts of a running kernel cost what they cost; leave it out"));
    }
    let ideal = HostModel::ideal();
    let costs = |knob: &&Knob<HostModel>| !OF_CARDS.contains(&knob.name) && (knob.get)(model) != (knob.get)(&ideal);
    match HOST_KNOBS.iter().find(costs) {
        None => Ok(()),
        Some(knob) => {
            let message = format!(
                "it is {}, and in the virtual kernel {}; leave it out, or use the engine sim",
                (knob.get)(model),
                (knob.get)(&ideal)
            );
            Err(limit(format!("hosts.{}", knob.name), message))
        }
    }
}

fn check_transport(transport: &TransportSpec, hosts: Hosts, linux: &Stack) -> Result<(), Limit> {
    let stack = &transport.stack;
    if stack.cc_profile != Profile::Linux {
        let profile = match stack.cc_profile {
            Profile::Ns2 => "ns2",
            _ => "rfc",
        };
        return Err(limit(
            "stack.profile",
            format!(
                "it is `{profile}`, and a real kernel is `linux`; write profile = \"linux\" or --set stack.profile=linux, or use the engine sim"
            ),
        ));
    }
    chosen(transport, hosts.whose)?;
    match hosts.hz {
        Some(hz) if stack.hz != hz && stack.hz != linux.hz => {
            let message = format!("it is {}, and this kernel is built with HZ={hz}", stack.hz);
            return Err(limit("stack.hz", format!("{message}; there are the engines kernel (250) and kernel-hz1000")));
        }
        _ => {}
    }
    let of_its_own = |name: &str| hosts.hz.is_some() && OF_THE_VIRTUAL_KERNEL.contains(&name);
    for knob in KNOBS.iter().filter(|k| !SETTABLE.contains(&k.name) && !of_its_own(k.name)) {
        let (have, want) = ((knob.get)(stack), (knob.get)(linux));
        if have != want {
            let message = format!("it is {have}, and the kernel has no setting for it (profile linux: {want})");
            return Err(limit(format!("stack.{}", knob.name), message));
        }
    }
    let resolved = resolved_stack(transport).unwrap_or_else(|_| stack.clone());
    let one_of = |name: &'static str, allowed: &[&str]| {
        let have = KNOBS.iter().find(|k| k.name == name).map(|k| (k.get)(stack)).unwrap_or_default();
        if allowed.contains(&have.as_str()) {
            return Ok(());
        }
        let message = format!("it is {have}; the kernel does {}", allowed.join(" or "));
        Err(limit(format!("stack.{name}"), message))
    };
    one_of("nagle", &["off", "minshall"])?;
    one_of("cwnd_validation", &["linux", "linux-keep"])?;
    one_of("recovery", &["rack", "newreno"])?;
    one_of("ecn", &["off", "classic", "dctcp"])?;
    if resolved.delack_segments > 2 {
        return Err(limit("stack.delack_segments", "the kernel acknowledges every packet (1) or every second (2)"));
    }
    let header = if stack.timestamps { 52 } else { 40 };
    if stack.header.get() != header {
        let message = format!("it is {}; the kernel's headers have {header}B here", stack.header);
        return Err(limit("stack.header", message));
    }
    if stack.initial_window.fract() != 0.0 {
        return Err(limit("stack.initial_window", "the kernel's initial window is a whole number of segments"));
    }
    Ok(())
}
