//! The loop: packets by their time stamps into the fabric, and out when their time has come.

use crate::config::Config;
use crate::figures::Figures;
use crate::frame::{self, Parsed};
use crate::load;
use crate::record::Writer;
use crate::ring::{BATCH, Ring, Sender, Taken};
use crate::sys;
use fanin_fabric::network::Network;
use fanin_fabric::{Fabric, Step};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The CPU is given up when there is nothing to do for longer than this, and taken back so long before there is, ns.
const SPIN_NS: u64 = 5_000;
/// While there is always something to do, whether to stop is asked so often, ns.
const ASK_NS: u64 = 5_000_000;
/// The longest sleep, ns.
const SLEEP_NS: u64 = 50_000_000;
/// A wall clock that moves by more than this against the monotonic one was set, ns.
const CLOCK_STEP_NS: u64 = 20_000;

/// Works as a switch until standard input ends; `ready` is called when packets may come.
///
/// # Errors
/// A sentence that names the file, device or system call.
pub fn run(config: &Config, ready: impl FnOnce()) -> Result<Figures, String> {
    let mut switch = Switch::new(config)?;
    ready();
    switch.run()?;
    switch.finish(config)
}

/// A packet on its way through the fabric.
#[derive(Clone, Default)]
struct Slot {
    frame: Vec<u8>,
    length: usize,
}

struct Switch {
    fabric: Fabric,
    ring: Ring,
    sender: Sender,
    record: Writer,
    /// Number of a host by its device's number and by its address, and device by host.
    by_device: Vec<Option<u32>>,
    by_address: BTreeMap<Ipv4Addr, u32>,
    device: Vec<i32>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Packets whose time has come: device, slot, time of the release in ns.
    due: Vec<(i32, usize, u64)>,
    /// Everything up to here is decided, ps of the monotonic clock.
    decided: u64,
    /// So long after the fact is decided what happens to a packet, ns: later than it is seen, earlier than its release.
    lookback: u64,
    wall_ahead: u64,
    figures: Figures,
}

impl Switch {
    fn new(config: &Config) -> Result<Switch, String> {
        let file = |path: &std::path::Path, e: std::io::Error| format!("{}: {e}", path.display());
        let network = load::network(config)?;
        let record = Writer::new(&config.record).map_err(|e| file(&config.record, e))?;
        sys::enter_namespace(&config.namespace).map_err(|e| file(&config.namespace, e))?;
        // After the writer's thread has begun, which is to stay an ordinary one.
        sys::schedule(config.cpu, config.priority)
            .map_err(|e| format!("CPU {} at priority {}: {e}", config.cpu, config.priority))?;
        let device: Vec<i32> = config
            .hosts
            .iter()
            .map(|h| sys::device(&h.device).map_err(|e| format!("{}: {e}", h.device)))
            .collect::<Result<_, _>>()?;
        let mut by_device = vec![None; device.iter().max().map_or(0, |&d| d as usize + 1)];
        device.iter().zip(0..).for_each(|(&d, host)| by_device[d as usize] = Some(host));
        let (network, lookback) = ahead(network);
        Ok(Switch {
            fabric: Fabric::new(network),
            ring: Ring::open(config.mtu as usize, &Taken::default()).map_err(|e| format!("a ring for packets: {e}"))?,
            sender: Sender::open().map_err(|e| format!("a socket for packets: {e}"))?,
            record,
            by_device,
            by_address: config.hosts.iter().zip(0..).map(|(h, n)| (h.address, n)).collect(),
            device,
            slots: Vec::new(),
            free: Vec::new(),
            due: Vec::with_capacity(BATCH),
            decided: 0,
            lookback,
            wall_ahead: sys::wall_ahead(),
            figures: Figures { lookback_ns: lookback, ..Figures::default() },
        })
    }

    fn run(&mut self) -> Result<(), String> {
        let (mut asked, mut before) = (sys::now(), sys::now());
        loop {
            let now = sys::now();
            // Between two looks at the clock there is a batch of work, and whatever took the CPU.
            self.figures.absent(now - before);
            before = now;
            let (next, waiting) = self.decide(now - self.lookback);
            self.release();
            if let Some(piece) = self.fabric.take_record(false) {
                self.record.write(piece);
            }
            let now = sys::now();
            self.figures.absent(now - before);
            before = now;
            let idle = next.map_or(SLEEP_NS, |t| (t + self.lookback).saturating_sub(now));
            if idle > SPIN_NS || now - asked > ASK_NS {
                let most = idle.saturating_sub(SPIN_NS).min(SLEEP_NS);
                // A packet that waits for its time would end every wait at once; the next one comes to be seen in time all the same. One that
                // has come since `decide` looked ends the wait: nothing else would.
                let ended =
                    sys::wait(self.ring.fd(), most, !waiting).map_err(|e| format!("waiting for packets: {e}"))?;
                if ended {
                    return Ok(());
                }
                asked = sys::now();
                self.figures.absent((asked - now).saturating_sub(most));
                before = asked;
            }
        }
    }

    /// Packets and events in the order of their times, up to `horizon` in ns; gives the time of the first thing after it, ns, and whether a
    /// packet waits in the ring.
    fn decide(&mut self, horizon: u64) -> (Option<u64>, bool) {
        loop {
            let packet = self.ring.peek().map(|r| r.time_ns.saturating_sub(self.wall_ahead));
            // An arrival is handed over at the next whole nanosecond.
            let event = self.fabric.next().map(|ps| ps.div_ceil(1000));
            let packet_first = match (packet, event) {
                (None, None) => return (None, false),
                (Some(p), Some(e)) => p < e,
                (packet, _) => packet.is_some(),
            };
            let time = if packet_first { packet } else { event }.unwrap_or(u64::MAX);
            if time > horizon {
                return (Some(time), packet.is_some());
            }
            if packet_first {
                self.take(time * 1000);
            } else {
                self.decided = self.decided.max(time * 1000);
                self.step(time);
                if self.due.len() >= BATCH {
                    self.release();
                }
            }
        }
    }

    /// The first packet of the ring goes into the fabric.
    fn take(&mut self, time: u64) {
        let Some(received) = self.ring.peek() else { return };
        let host = usize::try_from(received.device).ok().and_then(|d| *self.by_device.get(d)?);
        let parsed = Parsed::of(received.frame);
        let to = parsed.and_then(|p| self.by_address.get(&p.addresses.1).copied());
        if let (Some(host), Some(parsed), Some(to)) = (host, parsed, to) {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            });
            let kept = &mut self.slots[slot];
            kept.length = parsed.frame_length();
            kept.frame.clear();
            kept.frame.extend_from_slice(&received.frame[..kept.length]);
            let taken = time.max(self.decided);
            self.figures.misordered(time, taken);
            self.decided = taken;
            self.figures.received += 1;
            if self.figures.first_ns == 0 {
                self.figures.first_ns = taken / 1000;
            }
            let datagram = parsed.datagram(received.frame, slot, host, to);
            if !self.fabric.send(taken, &datagram) {
                self.free.push(slot);
            }
        } else {
            self.figures.strays += 1;
        }
        self.ring.pop();
    }

    /// What happens in the fabric at this time, ns.
    fn step(&mut self, time: u64) {
        loop {
            match self.fabric.step(time * 1000) {
                Step::Idle => return,
                // The host's kernel freed the packet when the ring took its copy.
                Step::Departed(_) => {}
                Step::Dropped(slot) => self.free.push(slot),
                Step::Arrived { handle, host, marked } => {
                    if marked {
                        frame::mark(&mut self.slots[handle].frame);
                    }
                    self.due.push((self.device[host as usize], handle, time + self.lookback));
                }
            }
        }
    }

    /// Sends what is due.
    fn release(&mut self) {
        for batch in self.due.chunks(BATCH) {
            let now = sys::now();
            let frames: [(i32, &[u8]); BATCH] = std::array::from_fn(|i| {
                let Some(&(device, slot, due)) = batch.get(i) else { return (0, &[][..]) };
                let slot = &self.slots[slot];
                self.figures.released(slot.length, now.saturating_sub(due));
                (device, &slot.frame[..])
            });
            self.figures.refused += self.sender.send(&frames[..batch.len()]);
            self.figures.last_ns = now;
        }
        self.free.extend(self.due.drain(..).map(|(_, slot, _)| slot));
    }

    fn finish(mut self, config: &Config) -> Result<Figures, String> {
        self.figures.strays += u64::from(self.fabric.strays());
        self.figures.ring_drops = self.ring.drops().map_err(|e| format!("statistics of the ring: {e}"))?;
        self.figures.clock_steps = u64::from(self.wall_ahead.abs_diff(sys::wall_ahead()) > CLOCK_STEP_NS);
        self.figures.cpu_ns = sys::cpu_time();
        if let Some(piece) = self.fabric.take_record(true) {
            self.record.write(piece);
        }
        self.record.finish().map_err(|e| format!("{}: {e}", config.record.display()))?;
        Ok(self.figures)
    }
}

/// Shortens the links that end at a host by what the shortest of them has, and says by how much in ns: the switch decides so much later
/// than things happen, when it has seen every packet, and still hands each packet over at its time.
///
/// The record of a packet says when it left a port, not when it arrived: it stays right.
fn ahead(mut network: Network) -> (Network, u64) {
    let last: Vec<usize> =
        network.connections.iter().flat_map(|c| &c.ways).filter_map(|w| w.links.last()).map(|&l| l as usize).collect();
    let shortest = last.iter().map(|&l| network.links[l].delay_ps).min().unwrap_or(0) / 1000;
    let mut ends = vec![false; network.links.len()];
    last.iter().for_each(|&l| ends[l] = true);
    for (link, ends) in network.links.iter_mut().zip(ends) {
        link.delay_ps -= if ends { shortest * 1000 } else { 0 };
        // Of interest to a kernel whose packets wait here; these have been freed.
        link.from_host = false;
    }
    (network, shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_fabric::network::{Connection, FIRST_CLIENT_PORT, Link, Threshold, Way};

    #[test]
    fn what_the_last_links_lose_is_what_the_switch_waits() {
        let link = |delay_ps, from_host| Link {
            rate_bps: 1_000_000_000,
            delay_ps,
            limit: Threshold::None,
            mark: Threshold::None,
            pool: None,
            from_host,
            rank: 0,
            bucket: None,
        };
        let way = |links| Way { links, ..Way::default() };
        let connection = Connection {
            client: 0,
            server: 1,
            port: FIRST_CLIENT_PORT,
            overhead: 0,
            ways: [way(vec![0, 1]), way(vec![2, 3])],
        };
        let links = vec![link(9_000_500, true), link(5_000_500, false), link(9_000_500, true), link(8_000_000, false)];
        let network = Network { hosts: 2, links, connections: vec![connection], ..Network::default() };
        let (network, lookback) = ahead(network);
        assert_eq!(lookback, 5000);
        let delays: Vec<u64> = network.links.iter().map(|l| l.delay_ps).collect();
        assert_eq!(delays, [9_000_500, 500, 9_000_500, 3_000_000]);
    }
}
