//! Hosts, settings and workload for the guest.

use crate::algorithms::{Whose, built_in};
use crate::limits::{Limit, limit};
use crate::{KernelError, connections, host_numbers};
use fanin_capture::write::Endpoint;
use fanin_cc::{RecoveryKind, Value};
use fanin_fabric::network::FIRST_CLIENT_PORT;
use fanin_guest::{Card, Guest, Host, namespace};
use fanin_linuxcc::receiver::Address;
use fanin_player::plan;
use fanin_sim::hosts::HostModel;
use fanin_sim::spec::{Flow, Gate, GateEvent, Message, NodeId, Release, Spec};
use fanin_sim::stack::{CwndValidation, EcnMode, Nagle, Stack};
use fanin_sim::{known_paths, resolved_stack};
use fanin_units::Duration;
use std::collections::BTreeMap;
use std::path::Path;

/// Listening ports: one for each congestion control that answers, so that it is set before a connection comes.
const FIRST_SERVER_PORT: u16 = 5_000;
const SERVER_PORTS: usize = 2_000;
/// An application is woken when so many bytes have come or its message is complete: to wake it costs more than a packet.
const READ_LOWAT: u32 = 16_384;

/// Local port of the end that connects.
pub fn client_port(connection: usize) -> u16 {
    // As many as `limits` allows.
    FIRST_CLIENT_PORT + connection as u16
}

/// Ports of a stream of datagrams.
pub fn datagram_ports(spec: &Spec, number: usize) -> (u16, u16) {
    (client_port(connections(spec).len() + number), FIRST_SERVER_PORT - 1 - number as u16)
}

/// Everything for the guest; `algorithms` names each flow's congestion control.
pub fn guest(spec: &Spec, algorithms: &[String]) -> Result<Guest, Limit> {
    let numbers = host_numbers(spec);
    let host = |node: NodeId| numbers[node.index()].unwrap_or_default();
    let hosts: Vec<plan::Host> = numbers
        .iter()
        .flatten()
        .map(|&n| plan::Host {
            namespace: namespace(n as usize).to_string_lossy().into_owned(),
            address: Endpoint::host(n, 0).ip,
        })
        .collect();
    let settings = settings(spec, hosts.len(), host)?;
    let (opened, flows) = opened(spec, algorithms, host);
    Ok(Guest {
        sysctls: MACHINE.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        hosts: settings,
        notes: false,
        plan: plan::Plan {
            connections: opened,
            flows,
            messages: spec.messages.iter().map(message).chain(openings(spec)).collect(),
            barriers: spec.barriers,
            gates: spec.gates.iter().map(gate).collect(),
            datagrams: datagrams(spec, host),
            end_ns: spec.end.ps() / 1000,
            stop_when_done: spec.stop_when_done,
            read_lowat: READ_LOWAT,
            http: false,
            deadline_map: None,
            options: false,
            hosts,
        },
    })
}

/// Connections with their ports and algorithms, and which of them carries each flow.
fn opened(
    spec: &Spec,
    algorithms: &[String],
    host: impl Fn(NodeId) -> u32,
) -> (Vec<plan::Connection>, Vec<plan::Flow>) {
    let mut flows = vec![plan::Flow { connection: 0, from_client: true, stop_ns: None }; spec.flows.len()];
    let mut opened = Vec::new();
    let mut listening: Vec<(u32, &str)> = Vec::new();
    for (number, connection) in connections(spec).into_iter().enumerate() {
        let flow = &spec.flows[connection.there.index()];
        let transport = &spec.transports[flow.transport as usize];
        for (id, from_client) in [(Some(connection.there), true), (connection.back, false)] {
            let Some(id) = id else { continue };
            let stop_ns = spec.flows[id.index()].stop.get().map(|t| t.ps() / 1000);
            flows[id.index()] = plan::Flow { connection: number as u32, from_client, stop_ns };
        }
        let cc = &algorithms[connection.there.index()];
        let server_cc = connection.back.map_or(cc, |back| &algorithms[back.index()]);
        let port = listening.iter().position(|l| *l == (flow.transport, server_cc)).unwrap_or_else(|| {
            listening.push((flow.transport, server_cc));
            listening.len() - 1
        });
        opened.push(plan::Connection {
            client: host(flow.src),
            server: host(flow.dst),
            client_port: client_port(number),
            server_port: FIRST_SERVER_PORT + (port % SERVER_PORTS) as u16,
            cc: cc.clone(),
            server_cc: (server_cc != cc).then(|| server_cc.clone()),
            early: !transport.stack.handshake,
            nodelay: transport.stack.nagle == Nagle::Off,
        });
    }
    (opened, flows)
}

fn message(m: &Message) -> plan::Message {
    plan::Message {
        flow: m.flow.0,
        bytes: (m.bytes != Message::UNLIMITED).then_some(m.bytes),
        release: match m.release {
            Release::At(time) => plan::Release::At(time.ps() / 1000),
            Release::After(barrier, delay) => plan::Release::After(barrier.0, delay.ps() / 1000),
            Release::NotBefore(time, barrier) => plan::Release::NotBefore(time.ps() / 1000, barrier.0),
        },
        completes: m.completes.map(|b| b.0),
        deadline_ns: m.deadline.map(|d| d.ps() / 1000),
    }
}

fn gate(g: &Gate) -> plan::Gate {
    plan::Gate {
        barrier: g.barrier.0,
        of: g.of.iter().map(|m| m.0).collect(),
        need: g.need,
        released: g.event == GateEvent::Released,
    }
}

fn datagrams(spec: &Spec, host: impl Fn(NodeId) -> u32) -> Vec<plan::Datagrams> {
    let all = spec.cbr.iter().enumerate().map(|(number, c)| {
        let (port, to_port) = datagram_ports(spec, number);
        plan::Datagrams {
            from: host(c.src),
            to: host(c.dst),
            port,
            to_port,
            // IP and UDP take 28 bytes of what is on the wire.
            bytes: c.packet.get().saturating_sub(28) as u32,
            interval_ps: (c.packet / c.rate).ps(),
            start_ns: c.start.ps() / 1000,
            stop_ns: c.stop.ps().min(spec.end.ps()) / 1000,
        }
    });
    all.collect()
}

/// Where a flow of the plan arrives, and from where it comes.
pub fn receiving_end(plan: &plan::Plan, flow: usize) -> (Address, Address) {
    let flow = &plan.flows[flow];
    let connection = &plan.connections[flow.connection as usize];
    let (client, server) = ((connection.client, connection.client_port), (connection.server, connection.server_port));
    if flow.from_client { (server, client) } else { (client, server) }
}

/// Connections that open before anything is sent, as messages of nothing, after the spec's own.
pub fn openings(spec: &Spec) -> impl Iterator<Item = plan::Message> {
    let shakes = |f: &Flow| spec.transports[f.transport as usize].stack.handshake;
    (0..).zip(&spec.flows).filter(move |(_, f)| shakes(f)).filter_map(|(number, f)| {
        f.open.get().map(|time| plan::Message {
            flow: number,
            bytes: Some(0),
            release: plan::Release::At(time.ps() / 1000),
            completes: None,
            deadline_ns: None,
        })
    })
}

/// Parameters of the kernel for its start: what the twin of TRIM is told of the path, as an administrator would, and the settings of C files
/// that were built in.
pub fn boot(spec: &Spec, whose: Whose) -> Result<String, KernelError> {
    const TWIN: &str = "trim";
    let mut known: Option<(u64, u64, u64)> = None;
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    for (flow, path) in spec.flows.iter().zip(known_paths(spec)?) {
        let transport = &spec.transports[flow.transport as usize];
        if transport.cc.name().trim_end_matches("@linux") == TWIN {
            let wire = transport.stack.wire(transport.stack.mss).get() * 8;
            // Requests go the other way; the slowest path is the bottleneck's.
            let rate = path.rate.bps() / wire.max(1);
            if known.is_none_or(|(r, ..)| rate <= r) {
                let buffer = if path.buffer_packets.is_finite() { path.buffer_packets as u64 } else { 0 };
                known = Some((rate, buffer, path.base_rtt.ps() / 1_000_000));
            }
        }
    }
    // A file's parameters hold for the whole kernel.
    for transport in spec.transports.iter().filter(|t| built_in(t, whose).is_some()) {
        for (name, value) in transport.args.iter() {
            let value = match value {
                Value::Number(x) => format!("{x}"),
                Value::Flag(on) => u8::from(*on).to_string(),
                Value::Word(word) => word.clone(),
            };
            let key = format!("{}.{name}", module_name(transport.cc.name()));
            match settings.insert(key, value.clone()) {
                Some(other) if other != value => {
                    let message = format!("it is {other} and {value}, and a kernel has one for all connections");
                    return Err(limit(format!("cc.{name}"), message).into());
                }
                _ => {}
            }
        }
    }
    let mut words: Vec<String> = settings.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    if let Some((rate, buffer, rtt)) = known {
        words.push(format!("{TWIN}.rate_pps={rate} {TWIN}.buffer_packets={buffer} {TWIN}.base_rtt_us={rtt}"));
    }
    Ok(words.join(" "))
}

/// The name that the kernel's build gives to the module that a file becomes (KBUILD_MODNAME).
fn module_name(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().replace('-', "_"))
}

/// What a machine with much memory has: the kernel derives these from its own, which is small (tcp_init, tcp_mem).
const MACHINE: &[(&str, &str)] = &[("net/ipv4/tcp_mem", "10000000 10000000 10000000"), ("net/core/somaxconn", "65535")];

fn settings(spec: &Spec, hosts: usize, host: impl Fn(NodeId) -> u32) -> Result<Vec<Host>, Limit> {
    let mut made: Vec<Option<(Host, &str)>> = vec![None; hosts];
    let receives = spec.receiving_hosts();
    for flow in &spec.flows {
        let transport = &spec.transports[flow.transport as usize];
        let stack = resolved_stack(transport).unwrap_or_else(|_| transport.stack.clone());
        for node in [flow.src, flow.dst] {
            let wanted = of_host(&stack, receives[node.index()]);
            match &mut made[host(node) as usize] {
                Some((have, other)) if *have != wanted => {
                    let name = &spec.nodes[node.index()].name;
                    let message = format!(
                        "host {name} would need the settings of `{other}` and of `{}` at once, and a kernel has them per host",
                        transport.cc
                    );
                    return Err(Limit { key: "stack".to_owned(), message });
                }
                Some(_) => {}
                none => *none = Some((wanted, transport.cc.name())),
            }
        }
    }
    let plain = of_host(&Stack::linux(), false);
    let card = card(&spec.hosts);
    let all = made.into_iter().map(|h| h.map_or_else(|| plain.clone(), |(host, _)| host));
    Ok(all.map(|host| Host { card: card.clone(), ..host }).collect())
}

/// What each host's network card does with what arrives.
fn card(hosts: &HostModel) -> Option<Card> {
    let ns = |time: Duration| time.ps() / 1_000;
    (!hosts.is_ideal()).then(|| Card {
        gro: hosts.gro,
        budget: hosts.napi_budget,
        frames: hosts.interrupt_frames,
        delay_ns: ns(hosts.interrupt_delay),
        gap_ns: ns(hosts.interrupt_gap),
        flush_ns: ns(hosts.gro_flush_timeout),
    })
}

/// A stack's knobs as settings of a network namespace (ip-sysctl) and of its route, on a host that is sent more than it sends or is not.
fn of_host(stack: &Stack, receives: bool) -> Host {
    let mut set: BTreeMap<&str, String> = BTreeMap::new();
    // Runs are independent: no cached ssthresh of the connection before.
    set.insert("tcp_no_metrics_save", "1".to_owned());
    // A window that is fixed is not one of Linux's.
    let buffer = stack.receive_buffer.get().max(4096);
    set.insert("tcp_rmem", format!("4096 {buffer} {}", stack.receive_window.get().max(buffer)));
    // tcp_init's values on a machine with at least 512 MB.
    set.insert("tcp_wmem", "4096 16384 4194304".to_owned());
    set.insert("tcp_timestamps", u8::from(stack.timestamps).to_string());
    set.insert("tcp_slow_start_after_idle", u8::from(stack.cwnd_validation == CwndValidation::Linux).to_string());
    set.insert("tcp_rto_min_us", (stack.min_rto_of(receives).ps() / 1_000_000).to_string());
    set.insert("tcp_comp_sack_nr", stack.comp_sack_nr.to_string());
    set.insert("tcp_comp_sack_delay_ns", (stack.comp_sack_delay.ps() / 1_000).to_string());
    set.insert("tcp_comp_sack_slack_ns", (stack.comp_sack_slack.ps() / 1_000).to_string());
    // 2, the kernel's own: agrees to ECN when asked. DCTCP asks by itself.
    set.insert("tcp_ecn", if stack.ecn == EcnMode::Classic { "1" } else { "2" }.to_owned());
    if stack.recovery == RecoveryKind::NewReno {
        for name in ["tcp_sack", "tcp_recovery", "tcp_early_retrans"] {
            set.insert(name, "0".to_owned());
        }
    }
    let options = if stack.timestamps { 12 } else { 0 };
    Host {
        mtu: stack.mss + 40 + options,
        sysctls: set.into_iter().map(|(name, value)| (format!("net/ipv4/{name}"), value)).collect(),
        initial_window: stack.initial_window as u32,
        quickack: stack.delack_segments == 1,
        tso: stack.tso,
        whole: u32::from(stack.longest_whole()),
        overhead: if stack.longest_whole() > 0 { stack.frame_overhead.get() as u32 } else { 0 },
        card: None,
    }
}
