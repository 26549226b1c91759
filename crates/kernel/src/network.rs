//! Ports, links and paths for the fabric.

use crate::guest::{client_port, datagram_ports};
use crate::{KernelError, connections, host_numbers};
use fanin_fabric::network::{self, Connection, Discipline, Network, Pool, Threshold, Way};
use fanin_sim::queue::Build;
use fanin_sim::rng::{Stream, mix};
use fanin_sim::spec::{Link, LinkId, NodeId, NodeKind, Spec};
use fanin_sim::{Bucket, check_disciplines, clock_error, routes, token_bucket};
use fanin_units::{Duration, QueueLimit};

/// The network of a plan.
pub fn network(spec: &Spec) -> Result<Network, KernelError> {
    check_disciplines(spec)?;
    let hosts = host_numbers(spec);
    let host = |node: NodeId| hosts[node.index()].unwrap_or_default();
    let routes = routes(spec)?;
    let links = |links: &[LinkId]| links.iter().map(|l| l.0).collect::<Vec<u32>>();
    let mut made = Vec::new();
    for (number, connection) in connections(spec).into_iter().enumerate() {
        let flow = &spec.flows[connection.there.index()];
        let stack = &spec.transports[flow.transport as usize].stack;
        let [there, back] = [connection.there, connection.back.unwrap_or(connection.there)];
        // A direction carries the data of its own flow and the acknowledgements of the other: as the simulator's flows draw for them.
        let way = |links: Vec<u32>, data: u32, acks: u32| Way {
            links,
            jitter_ps: stack.send_jitter.ps(),
            seeds: [Stream::seed(spec.seed, "flow", u64::from(data)), Stream::seed(spec.seed, "acks", u64::from(acks))],
        };
        let backward = match connection.back {
            Some(flow) => &routes[flow.index()][0],
            None => &routes[there.index()][1],
        };
        made.push(Connection {
            client: host(flow.src),
            server: host(flow.dst),
            port: client_port(number),
            overhead: stack.frame_overhead.get() as u32,
            ways: [way(links(&routes[there.index()][0]), there.0, back.0), way(links(backward), back.0, there.0)],
        });
    }
    for (number, cbr) in spec.cbr.iter().enumerate() {
        let forward = links(&routes[spec.flows.len() + number][0]);
        let way = |links| Way { links, ..Way::default() };
        made.push(Connection {
            client: host(cbr.src),
            server: host(cbr.dst),
            port: datagram_ports(spec, number).0,
            overhead: 0,
            // Nothing comes back; the fabric wants a way all the same.
            ways: [way(forward.clone()), way(forward)],
        });
    }
    let (pools, pool_of) = pools(spec);
    let links = spec.links.iter().zip(pool_of).enumerate().map(|(number, (link, pool))| network::Link {
        // As the simulator's: the same draw, to a bit per second.
        rate_bps: (link.rate.bps() as f64 * (1.0 + clock_error(spec, number))).round() as u64,
        delay_ps: delay(spec, LinkId(number as u32)).ps(),
        limit: threshold(link.queue.limit),
        mark: threshold(link.queue.mark_above),
        pool,
        from_host: spec.nodes[link.from.index()].kind == NodeKind::Host,
        rank: mix(spec.seed ^ mix(number as u64)) as u32,
        bucket: token_bucket(spec, number).map(|Bucket { size, latency_ps, seed }| network::Bucket {
            size,
            latency_ps,
            seed,
        }),
    });
    let hosts = hosts.iter().flatten().count() as u32;
    Ok(Network { hosts, links: links.collect(), pools, connections: made, disciplines: disciplines(spec) })
}

/// Shared buffers, and which of them each link has.
fn pools(spec: &Spec) -> (Vec<Pool>, Vec<Option<u32>>) {
    let mut pools = Vec::new();
    let mut pool_of = vec![None; spec.links.len()];
    for (node, n) in spec.nodes.iter().zip(0_u32..) {
        let Some(shared) = node.shared_buffer else { continue };
        let own: Vec<u32> = (0..spec.links.len() as u32).filter(|&l| spec.links[l as usize].from.0 == n).collect();
        for &l in &own {
            pool_of[l as usize] = Some(pools.len() as u32);
        }
        pools.push(Pool { size: shared.size.get(), alpha: shared.alpha, links: own });
    }
    (pools, pool_of)
}

/// Ports that are more than drop-tail; their streams are the simulator's.
fn disciplines(spec: &Spec) -> Vec<Discipline> {
    let special = |(_, link): &(u32, &Link)| !matches!(link.queue.discipline.build, Build::Plain);
    let links = (0..).zip(&spec.links).filter(special);
    let made = links.map(|(number, link)| Discipline {
        link: number,
        name: link.queue.discipline.name.to_owned(),
        settings: link.queue.args.clone(),
        seed: Stream::seed(spec.seed, "queue", u64::from(number)),
    });
    made.collect()
}

fn threshold(limit: Option<QueueLimit>) -> Threshold {
    match limit {
        None => Threshold::None,
        Some(QueueLimit::Packets(n)) => Threshold::Packets(n),
        Some(QueueLimit::Bytes(b)) => Threshold::Bytes(b.get()),
    }
}

/// From a packet's departure to its arrival: propagation, and the processing of the switch it comes to.
pub fn delay(spec: &Spec, link: LinkId) -> Duration {
    let link = &spec.links[link.index()];
    let end = &spec.nodes[link.to.index()];
    if end.kind == NodeKind::Switch { link.delay + end.processing } else { link.delay }
}
