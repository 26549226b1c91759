//! Which congestion control of the kernel stands for a transport's algorithm: Linux's own, a twin in C, or fanin's Rust in the kernel.

use crate::limits::{Limit, limit};
use fanin_cc::PathKnowledge;
use fanin_cc::registry::{self, Algorithm, Kind};
use fanin_linuxcc::receiver::{Address, End, Receivers};
use fanin_linuxcc::{Path, Program};
use fanin_sim::rng::{Stream, mix};
use fanin_sim::spec::{NodeId, Spec, TransportSpec};
use fanin_sim::{RunError, known_paths, resolved_stack};
use std::collections::BTreeMap;

/// Whose code decides windows where there is a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Whose {
    /// Linux's, else fanin's twin in C: what a running kernel can have.
    #[default]
    Twin,
    /// Linux's, else fanin's Rust: the virtual kernel.
    Rust,
    /// Fanin's Rust even for what Linux has itself.
    RustAlways,
}

/// What a plan runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    /// Whose algorithms run.
    pub whose: Whose,
    /// Jiffies per second of the kernel, if it is not the profile's.
    pub hz: Option<u32>,
}

/// A transport's congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Built into the kernel under this name.
    Named(&'static str),
    /// A [`Program`].
    Program,
}

/// It decides by the deadlines of messages.
const NEEDS_DEADLINES: &str = "d2tcp";

/// The kernel's congestion control for a transport's senders.
///
/// # Errors
/// [`Limit`] when it has none.
pub fn chosen(transport: &TransportSpec, whose: Whose) -> Result<Chosen, Limit> {
    let name = transport.cc.name();
    let deployment = registry::deployment(name).unwrap_or_default();
    // What acts at the receiver runs beside any sender in the virtual kernel.
    let shims = deployment.sender_shim || (deployment.receiver_shim && whose == Whose::Twin);
    let named = match whose {
        _ if shims => None,
        Whose::Twin => deployment.kernel.or(deployment.twin),
        Whose::Rust => deployment.kernel,
        Whose::RustAlways => None,
    };
    // The name of a twin in C, `trim@linux`, is that twin's wherever it runs.
    let outside = transport.cc.parts().iter().any(|part| matches!(part.kind, Kind::Extension(_)));
    let built_in = built_in(transport, whose);
    let named = if outside { deployment.twin.or(built_in) } else { named };
    // The parameters of a file are the kernel's own module parameters.
    let of_receiver = |name: &&str| policy(transport).is_some_and(|p| p.params.iter().any(|param| param.name == *name));
    let parameter = transport.args.names().find(|name| !of_receiver(name)).filter(|_| built_in.is_none());
    match (named, parameter) {
        (Some(named), None) => Ok(Chosen::Named(named)),
        (Some(named), Some(parameter)) => Err(limit(
            format!("cc.{parameter}"),
            format!(
                "the kernel's {named} has no such setting here; remove it, or use the engine {}",
                match whose {
                    Whose::Twin => "sim",
                    _ => "kernel-fanin, which runs fanin's own algorithm on Linux's TCP, or sim",
                }
            ),
        )),
        (None, _) if whose != Whose::Twin && !outside && sends_by_tcp(transport) => Ok(Chosen::Program),
        (None, _) => Err(limit("cc.name", format!("{}; use the engine sim", why_not(transport, whose)))),
    }
}

/// The name under which the virtual kernel has a user's C file, if that is the algorithm; whether it is built in only its builder knows.
pub fn built_in(transport: &TransportSpec, whose: Whose) -> Option<&'static str> {
    match transport.cc.parts() {
        [one] if whose != Whose::Twin && one.deploy.is_empty() => match one.kind {
            Kind::Extension(file) => file.linux_name(),
            _ => None,
        },
        _ => None,
    }
}

fn sends_by_tcp(transport: &TransportSpec) -> bool {
    let is_of_tcp = |kind: Kind| !matches!(kind, Kind::Endpoint(_) | Kind::Extension(_));
    transport.cc.parts().iter().all(|part| is_of_tcp(part.kind))
}

/// The part that acts at the receiver.
fn policy(transport: &TransportSpec) -> Option<&'static Algorithm> {
    transport.cc.parts().iter().copied().find(|part| matches!(part.kind, Kind::Receiver(_)))
}

/// Some algorithm asks what applications expect, or until when what they send should be delivered.
pub(crate) fn asks_applications(spec: &Spec) -> bool {
    let asks = |part: &&Algorithm| matches!(part.kind, Kind::Receiver(_)) || part.name == NEEDS_DEADLINES;
    spec.transports.iter().any(|transport| transport.cc.parts().iter().any(asks))
}

fn why_not(transport: &TransportSpec, whose: Whose) -> String {
    let cc = &transport.cc;
    if whose == Whose::Twin {
        format!("a running kernel has no `{cc}`; it runs what `fanin list cc` calls kernel or twin")
    } else {
        format!("the virtual kernel has no `{cc}`: it runs Linux's algorithms and those of fanin's that send by TCP")
    }
}

/// Programs of a plan, and of each flow its congestion control's name.
pub fn programs(spec: &Spec, hosts: Hosts) -> Result<(Vec<Program>, Vec<String>), Limit> {
    let mut programs: Vec<Program> = Vec::new();
    let mut names = Vec::new();
    let paths = if spec.flows.is_empty() { Vec::new() } else { paths(spec)? };
    for (flow, path) in spec.flows.iter().zip(paths) {
        let transport = &spec.transports[flow.transport as usize];
        match chosen(transport, hosts.whose)? {
            Chosen::Named(name) => names.push(name.to_owned()),
            Chosen::Program => {
                let program = program(spec, transport, &path, hosts.hz);
                let same = |p: &Program| Program { name: String::new(), ..p.clone() } == program;
                let number = programs.iter().position(same).unwrap_or_else(|| {
                    // TCP_CA_NAME_MAX is 16 with the closing zero; twins have `fanin_` before theirs.
                    let short: String = transport.cc.name().replace('+', "_").chars().take(10).collect();
                    let name = format!("{short}.{}", programs.len());
                    programs.push(Program { name, ..program });
                    programs.len() - 1
                });
                names.push(programs[number].name.clone());
            }
        }
    }
    Ok((programs, names))
}

/// Receiving ends under control: as in the simulator a policy for each receiving host and transport, which knows its flows in their order.
/// `end` says where a flow arrives, and from where.
pub fn receivers(
    spec: &Spec,
    hosts: Hosts,
    end: impl Fn(usize) -> (Address, Address),
) -> Result<Option<Receivers>, Limit> {
    if !spec.transports.iter().any(|transport| policy(transport).is_some()) {
        return Ok(None);
    }
    let mut made = Receivers::default();
    let mut known: BTreeMap<(NodeId, u32), u32> = BTreeMap::new();
    for ((number, flow), path) in spec.flows.iter().enumerate().zip(paths(spec)?) {
        let transport = &spec.transports[flow.transport as usize];
        if policy(transport).is_none() {
            continue;
        }
        let policy = *known.entry((flow.dst, flow.transport)).or_insert_with(|| {
            made.policies.push(program(spec, transport, &path, hosts.hz));
            made.policies.len() as u32 - 1
        });
        let (local, remote) = end(number);
        // The simulator's own stream (`Tcp::control_receivers`).
        let uniform = Stream::new(spec.seed, "receiver", number as u64).uniform();
        made.ends.push(End { local, remote, policy, base_rtt_ps: path.base_rtt.ps(), uniform });
    }
    Ok(Some(made))
}

fn paths(spec: &Spec) -> Result<Vec<PathKnowledge>, Limit> {
    known_paths(spec).map_err(|error: RunError| limit("topology", error.to_string()))
}

fn program(spec: &Spec, transport: &TransportSpec, path: &PathKnowledge, hz: Option<u32>) -> Program {
    let stack = resolved_stack(transport).unwrap_or_else(|_| transport.stack.clone());
    Program {
        name: String::new(),
        algorithm: transport.cc.name().to_owned(),
        settings: transport.args.clone(),
        mss: stack.mss,
        wire: stack.wire(stack.mss).get(),
        initial_window: stack.initial_window,
        initial_ssthresh: stack.initial_ssthresh,
        hz: hz.unwrap_or(stack.hz),
        path: Some(Path {
            rate_bps: path.rate.bps(),
            base_rtt_ps: path.base_rtt.ps(),
            buffer_packets: path.buffer_packets,
        }),
        seed: mix(spec.seed),
    }
}
