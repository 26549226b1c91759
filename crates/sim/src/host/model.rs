//! What a host is made of: its network card, its processors and what they take for each step, and how its application wakes up. What users
//! write under `[hosts]`.
//!
//! *Sources* of the presets' numbers:
//! - what a processor takes: J. Ousterhout, HomaModule, `perf.txt`, timelines of January 2021 (Xeon E5-2640 v4, 25 Gbps ConnectX-4 Lx, Linux
//!   5.4.80, columns "Server") and "cost of interrupt handler" of June 2020; waking a core from C1 takes 2 us (notes of 2026);
//! - copying: Q. Cai et al., *Understanding host network stack overheads*, SIGCOMM 2021: 42 Gbps per core, half of its cycles in copies;
//! - interrupts: Linux 6.12 `i40e_txrx.h` (`I40E_ITR_20K`), `linux/dim.h` (`NET_DIM_RX_CQE_PROFILES`, the second, where a `mlx5` card begins);
//! - budgets and rings: `NAPI_POLL_WEIGHT`, `I40E_DEFAULT_NUM_DESCRIPTORS`, `MLX5E_PARAMS_DEFAULT_LOG_RQ_SIZE`.

use crate::knobs::{FLAG, Field, Knob, TIME, count, knobs};
use fanin_units::{Duration, Setting};

/// How many processors a host has at most.
pub const MOST_PROCESSORS: u64 = 64;

/// Every host of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostModel {
    /// Processors that take interrupts, each with a receive queue of the network card; the application runs on the last.
    pub processors: u32,
    /// Packets that a receive queue of the card holds.
    pub ring: u32,
    /// The card interrupts so long after a packet has come (`ethtool -C ... rx-usecs` of most cards).
    pub interrupt_delay: Duration,
    /// It does so at once when so many packets wait; 0: never.
    pub interrupt_frames: u32,
    /// Least time between two interrupts (`rx-usecs` of Intel's cards).
    pub interrupt_gap: Duration,
    /// TCP hands many segments at once to the card, which cuts them: `tso` of every Linux stack.
    pub tso: bool,
    /// From the interrupt to the first packet that the driver takes.
    pub interrupt_time: Duration,
    /// Packets that the driver takes in one poll.
    pub napi_budget: u32,
    /// Segments of a connection that follow each other are merged.
    pub gro: bool,
    /// How long merged segments may wait for more after the queue has run empty.
    pub gro_flush_timeout: Duration,
    /// Processor time of the driver and GRO for each packet that arrives.
    pub packet_time: Duration,
    /// Processor time of IP and TCP for each segment that GRO hands up.
    pub segment_time: Duration,
    /// Processor time of IP and TCP for each ACK without data that arrives.
    pub ack_time: Duration,
    /// Processor time of IP and the driver for each packet, or burst that the card cuts, that leaves.
    pub send_time: Duration,
    /// From the arrival of data to an application that slept.
    pub wakeup: Duration,
    /// Processor time of a read, the system call included, without the copy.
    pub read_time: Duration,
    /// Processor time to copy a KiB to the application.
    pub copy_time: Duration,
}

impl HostModel {
    /// Hosts that cost nothing: a packet is with TCP, and a message with the application, the instant that it arrives.
    pub fn ideal() -> HostModel {
        HostModel {
            processors: 1,
            ring: 65_535,
            interrupt_delay: Duration::ZERO,
            interrupt_frames: 0,
            interrupt_gap: Duration::ZERO,
            tso: false,
            interrupt_time: Duration::ZERO,
            napi_budget: 64,
            gro: false,
            gro_flush_timeout: Duration::ZERO,
            packet_time: Duration::ZERO,
            segment_time: Duration::ZERO,
            ack_time: Duration::ZERO,
            send_time: Duration::ZERO,
            wakeup: Duration::ZERO,
            read_time: Duration::ZERO,
            copy_time: Duration::ZERO,
        }
    }

    /// A server with a 25 Gbps card of Nvidia's.
    pub fn of_25g() -> HostModel {
        HostModel {
            processors: 4,
            ring: 1024,
            interrupt_delay: Duration::us(8),
            interrupt_frames: 128,
            interrupt_gap: Duration::ZERO,
            tso: true,
            interrupt_time: Duration::ns(560),
            napi_budget: 64,
            gro: true,
            gro_flush_timeout: Duration::ZERO,
            packet_time: Duration::ns(350),
            segment_time: Duration::ns(760),
            ack_time: Duration::ns(525),
            send_time: Duration::ns(495),
            wakeup: Duration::us(2),
            read_time: Duration::ns(780),
            copy_time: Duration::ns(100),
        }
    }

    /// The same server with a 10 Gbps card of Intel's.
    pub fn of_10g() -> HostModel {
        HostModel {
            ring: 512,
            interrupt_delay: Duration::ZERO,
            interrupt_frames: 0,
            interrupt_gap: Duration::us(50),
            ..HostModel::of_25g()
        }
    }

    /// Nothing of them is simulated but what TCP hands to the card.
    pub fn is_ideal(&self) -> bool {
        let ideal = HostModel::ideal();
        // Without a card that waits or merges and without costs the other numbers mean nothing.
        let HostModel { processors, ring, napi_budget, tso, .. } = ideal;
        HostModel { processors, ring, napi_budget, tso, ..self.clone() } == ideal
    }
}

/// The named sets: name, what it is, and its values.
pub static HOST_PRESETS: &[HostPreset] = &[
    HostPreset { name: "ideal", title: "hosts that cost nothing", source: "", model: HostModel::ideal },
    HostPreset {
        name: "10g",
        title: "a server of four cores with an i40e card: 20,000 interrupts a second at most",
        source: "HomaModule perf.txt (2021); Cai et al., SIGCOMM 2021; Linux i40e_txrx.h",
        model: HostModel::of_10g,
    },
    HostPreset {
        name: "25g",
        title: "a server of four cores with an mlx5 card: an interrupt 8us after a packet, or for 128",
        source: "HomaModule perf.txt (2021); Cai et al., SIGCOMM 2021; Linux dim.h",
        model: HostModel::of_25g,
    },
];

/// A named set.
pub struct HostPreset {
    /// As written in `hosts = "..."`.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Who published the numbers.
    pub source: &'static str,
    /// Its values.
    pub model: fn() -> HostModel,
}

knobs! {
    /// Everything that can be set of hosts, in the order the reference shows it.
    HOST_KNOBS of HostModel {
        processors: count(1, MOST_PROCESSORS), "processors that take interrupts, each with a receive queue of the card (RSS); the application runs on the last";
        ring: count(1, 65_535), "packets that a receive queue of the card holds (ethtool -G ... rx): more are dropped";
        interrupt_delay: TIME, "the card interrupts so long after the first packet that waits (ethtool -C ... rx-usecs of most cards)";
        interrupt_frames: count(0, 65_535), "it interrupts at once when so many packets wait (ethtool -C ... rx-frames); 0: never";
        interrupt_gap: TIME, "least time between two interrupts of a queue (ethtool -C ... rx-usecs of Intel's cards)";
        tso: FLAG, "segmentation offload: stack.tso of every connection of a Linux stack (ethtool -K ... tso on)";
        interrupt_time: TIME, "from an interrupt to the first packet that the driver takes";
        napi_budget: count(1, 65_535), "packets that the driver takes in one poll (NAPI_POLL_WEIGHT: 64)";
        gro: FLAG, "segments of a connection are merged until PSH, a gap, another ECN mark, 64 KB or the end of a poll (ethtool -K ... gro on)";
        gro_flush_timeout: TIME, "how long merged segments may wait for more after the queue has run empty (/sys/class/net/DEV/gro_flush_timeout)";
        packet_time: TIME, "processor time of the driver and GRO for each packet that arrives";
        segment_time: TIME, "processor time of IP and TCP for each segment that arrives, merged or not";
        ack_time: TIME, "processor time of IP and TCP for each ACK without data that arrives";
        send_time: TIME, "processor time of IP and the driver for each packet that leaves, or burst that the card cuts";
        wakeup: TIME, "from the arrival of data to an application that slept";
        read_time: TIME, "processor time of a read, the system call included, without the copy";
        copy_time: TIME, "processor time to copy a KiB to the application";
    }
}

/// The preset of this exact name.
pub fn host_preset(name: &str) -> Option<&'static HostPreset> {
    HOST_PRESETS.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_of_hosts_reads_back_what_it_prints_in_every_preset() {
        for preset in HOST_PRESETS {
            let model = (preset.model)();
            let mut copy = HostModel::ideal();
            for knob in HOST_KNOBS {
                (knob.set)(&mut copy, &(knob.get)(&model)).unwrap();
            }
            assert_eq!(copy, model, "{}", preset.name);
        }
    }

    #[test]
    fn hosts_are_ideal_until_something_of_them_costs_waits_or_merges() {
        assert!(HostModel::ideal().is_ideal());
        assert!(HostModel { processors: 8, ring: 1, napi_budget: 1, ..HostModel::ideal() }.is_ideal());
        assert!(!HostModel { gro: true, ..HostModel::ideal() }.is_ideal());
        assert!(!HostModel { wakeup: Duration::us(1), ..HostModel::ideal() }.is_ideal());
        assert!(HOST_PRESETS[1..].iter().all(|preset| !(preset.model)().is_ideal()));
    }
}
