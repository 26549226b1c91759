//! Packet trimming (NDP's switch): a full queue cuts the payload off a packet and keeps its header, and headers overtake data. So the
//! receiver hears of every packet that was sent, and nothing waits for a timeout.
//!
//! *Source*: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance" (SIGCOMM 2017),
//! section 3.1: a short queue of data and a queue of headers and control packets, ten of which are sent for one of the data while both
//! wait; whether the arriving packet or the last one in the queue is cut is drawn, so that no sender is cut again and again.
//!
//! *Departure*: a header that finds no place is dropped; the paper's switch returns it to its sender.

use super::{Build, Context, Discipline, Scheduler};
use crate::packet::{Packet, flags};
use crate::random::Stream;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use fanin_units::{Args, Profile, Setting, SettingError};

const DATA: Setting = Setting::parameter("trim_data", 8.0, 1.0, 1e6)
    .unit("packets")
    .doc("section 3.1", "data packets that wait; what comes beyond is trimmed");
const HEADERS: Setting = Setting::parameter("trim_headers", 1125.0, 1.0, 1e6)
    .unit("packets")
    .doc("section 3.1", "headers and control packets that wait: as many bytes as eight packets of 9000");
const SIZE: Setting = Setting::parameter("trim_size", 64.0, 1.0, 9000.0)
    .unit("bytes")
    .doc("section 3.1", "what is left of a trimmed packet on the wire");

/// Headers sent for one data packet while both wait.
const HEADERS_PER_DATA: u32 = 10;

/// `trimming`.
pub const DISCIPLINE: Discipline = Discipline {
    name: "trimming",
    title: "NDP's switch: a full queue cuts packets down to their headers, which overtake data",
    source: "Handley et al., SIGCOMM 2017, section 3.1",
    params: &[DATA, HEADERS, SIZE],
    marks: false,
    build: Build::Scheduler(build),
};

fn build(context: &Context, args: &Args) -> Result<Box<dyn Scheduler>, SettingError> {
    let number = |param| args.number(param, Profile::Rfc);
    Ok(Box::new(Trimming {
        most_data: number(&DATA)? as usize,
        most_headers: number(&HEADERS)? as usize,
        size: number(&SIZE)? as u16,
        data: VecDeque::new(),
        headers: VecDeque::new(),
        headers_in_turn: 0,
        random: context.random.clone(),
    }))
}

#[derive(Debug)]
struct Trimming {
    most_data: usize,
    most_headers: usize,
    size: u16,
    data: VecDeque<Packet>,
    headers: VecDeque<Packet>,
    /// Headers sent since the last data packet that had to wait for them.
    headers_in_turn: u32,
    random: Stream,
}

impl Scheduler for Trimming {
    fn enqueue(&mut self, packet: Packet) -> u16 {
        // Section 3.1: headers and control packets have a queue of their own.
        if packet.has(flags::URGENT) {
            self.headers.push_back(packet);
            return 0;
        }
        self.data.push_back(packet);
        if self.data.len() <= self.most_data {
            return 0;
        }
        // The one that arrived, or the last one before it; among those that may be cut.
        let last = self.data.len() - 1;
        let earlier = last > 0 && self.random.below(2) == 1 && self.data[last - 1].has(flags::TRIMMABLE);
        let victim = if earlier { last - 1 } else { last };
        if !self.data[victim].has(flags::TRIMMABLE) {
            return 0;
        }
        // What is left of the packet overtakes the data.
        let Some(mut header) = self.data.remove(victim) else { return 0 };
        // What is left has the header's length, whatever the packet's: a packet shorter than that loses nothing.
        let cut = header.bytes.saturating_sub(self.size);
        header.bytes -= cut;
        header.flags |= flags::TRIMMED | flags::URGENT;
        self.headers.push_back(header);
        cut
    }

    fn overflows(&self) -> bool {
        self.data.len() > self.most_data || self.headers.len() > self.most_headers
    }

    fn evict(&mut self) -> Option<Packet> {
        // The newest of the queue that is too long.
        if self.headers.len() > self.most_headers || self.data.is_empty() {
            self.headers.pop_back()
        } else {
            self.data.pop_back()
        }
    }

    fn dequeue(&mut self) -> Option<Packet> {
        // Section 3.1: headers first, but one packet of data after ten of them.
        if self.headers.is_empty() || (self.headers_in_turn >= HEADERS_PER_DATA && !self.data.is_empty()) {
            self.headers_in_turn = 0;
            return self.data.pop_front();
        }
        self.headers_in_turn += 1;
        self.headers.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use fanin_units::Rate;

    fn trimming(data: f64) -> Box<dyn Scheduler> {
        let mut args = Args::default();
        args.set("trim_data", fanin_units::Value::Number(data));
        build(&Context { rate: Rate::gbps(10), random: Stream::new(1, "test", 0) }, &args).unwrap()
    }

    fn data(handle: u64) -> Packet {
        Packet { handle, flow: 0, bytes: 1500, flags: flags::TRIMMABLE }
    }

    #[test]
    fn what_does_not_fit_leaves_as_headers_ahead_of_the_data_and_none_is_lost() {
        let mut queue = trimming(3.0);
        let cut: u32 = (0..8).map(|n| u32::from(queue.enqueue(data(n)))).sum();
        assert_eq!(cut, 5 * (1500 - 64));
        assert!(!queue.overflows());
        let left: Vec<Packet> = core::iter::from_fn(|| queue.dequeue()).collect();
        assert!(left[..5].iter().all(|p| p.has(flags::TRIMMED) && p.bytes == 64));
        assert!(left[5..].iter().all(|p| !p.has(flags::TRIMMED) && p.bytes == 1500));
        let mut handles: Vec<u64> = left.iter().map(|p| p.handle).collect();
        handles.sort_unstable();
        assert_eq!(handles, (0..8).collect::<Vec<u64>>());
    }

    #[test]
    fn data_are_not_starved_by_headers() {
        let mut queue = trimming(2.0);
        queue.enqueue(data(0));
        for n in 1..=30 {
            queue.enqueue(Packet { flags: flags::URGENT, bytes: 64, ..data(n) });
        }
        let first_data = core::iter::from_fn(|| queue.dequeue()).position(|p| p.handle == 0);
        assert_eq!(first_data, Some(10));
    }

    #[test]
    fn packets_of_other_transports_are_dropped_whole() {
        let mut queue = trimming(2.0);
        for n in 0..2 {
            queue.enqueue(Packet { flags: 0, ..data(n) });
            assert!(!queue.overflows());
        }
        assert_eq!(queue.enqueue(Packet { flags: 0, ..data(2) }), 0);
        assert!(queue.overflows());
        assert_eq!(queue.evict().map(|p| p.handle), Some(2));
    }
}
