//! Hosts that cost something (`hosts`): what their receive path and processors do to packets, ACKs and applications.

use crate::common::*;
use fanin_sim::hosts::HostModel;
use fanin_sim::packet::flags;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::{Duration, Rate};

const MSS: u64 = 1448;
/// `PacketEvent`s as traces number them.
const ACCEPTED: u8 = 0;
const DELIVERED: u8 = 3;

/// One message from one host, whose link is a tenth as fast as the network, to another; packets are recorded on both hosts' links.
fn one_message(bytes: u64, tso: bool, hosts: HostModel) -> Results {
    let mut spec = star(1, Rate::gbps(10), Duration::us(50), None, None);
    spec.links[2].rate = Rate::gbps(1);
    spec.hosts = hosts;
    let stack = Stack { tso, handshake: false, send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..Stack::linux() };
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, bytes, Duration::ZERO);
    spec.trace.packets = vec![LinkId(0), LinkId(2)];
    run(&spec)
}

fn acks(r: &Results) -> usize {
    let p = &r.traces.packets;
    (0..p.seq.len()).filter(|&i| p.link[i] == 0 && p.event[i] == ACCEPTED && p.flags[i] & flags::ACK != 0).count()
}

/// When the message had been read, us.
fn read_at(r: &Results) -> f64 {
    r.messages.row(0).done_ps.unwrap() as f64 / 1e6
}

/// Ten segments leave as two bursts of five and wait for the card's interrupt: two merged segments.
#[test]
fn a_merged_segment_is_acknowledged_once() {
    let merging = HostModel { gro: true, interrupt_delay: Duration::us(200), ..HostModel::ideal() };
    let alone = HostModel { gro: false, ..merging.clone() };
    assert_eq!(acks(&one_message(10 * MSS, true, merging)), 2);
    assert_eq!(acks(&one_message(10 * MSS, true, alone)), 10);
}

#[test]
fn an_application_has_a_message_when_it_is_awake_and_has_copied_it() {
    let none = read_at(&one_message(1024, false, HostModel::ideal()));
    let hosts = HostModel {
        interrupt_delay: Duration::us(1),
        interrupt_time: Duration::us(2),
        packet_time: Duration::us(4),
        segment_time: Duration::us(8),
        wakeup: Duration::us(16),
        read_time: Duration::us(32),
        copy_time: Duration::us(64),
        ..HostModel::ideal()
    };
    assert_eq!((read_at(&one_message(1024, false, hosts)) - none).round(), 127.0);
}

/// What is not read keeps the window down, so that an ACK which is due waits for the reading (`__tcp_ack_snd_check`): instead of one for two segments of
/// 12 us each, one whenever the application has read for 100 us.
#[test]
fn an_ack_that_is_due_waits_until_the_application_reads() {
    let slow = HostModel { read_time: Duration::us(100), ..HostModel::ideal() };
    let [once, slowly] = [HostModel::ideal(), slow].map(|hosts| acks(&one_message(4000 * MSS, false, hosts)));
    // 48 ms; at first the window grows, and each segment is acknowledged.
    assert!(once > 2000 && (480..700).contains(&slowly), "{once} and {slowly} ACKs");
}

/// Each of ten segments takes the sender's processor 20 us, more than its link (12 us).
#[test]
fn packets_leave_no_faster_than_a_processor_sends_them() {
    let hosts = HostModel { send_time: Duration::us(20), ..HostModel::ideal() };
    let times = |tso: bool| -> Vec<f64> {
        let r = one_message(10 * MSS, tso, hosts.clone());
        let p = &r.traces.packets;
        let arrivals = (0..p.seq.len()).filter(|&i| p.link[i] == 2 && p.event[i] == DELIVERED && p.payload[i] > 0);
        let at: Vec<f64> = arrivals.map(|i| p.time_ps[i] as f64 / 1e6).collect();
        at.windows(2).map(|w| (w[1] - w[0]).round()).collect()
    };
    assert_eq!(times(false), [20.0; 9]);
    // A burst takes the processor once, and its segments follow at the link's rate.
    assert_eq!(times(true), [12.0; 9]);
}

#[test]
fn a_receive_queue_without_room_drops_and_tcp_repairs_it() {
    let hosts = HostModel { ring: 4, interrupt_delay: Duration::us(200), ..HostModel::ideal() };
    let r = one_message(100 * MSS, false, hosts);
    assert!(r.flows.row(0).drops > 0 && r.messages.row(0).done_ps.is_some(), "{:?}", r.flows.row(0));
    assert_eq!(one_message(100 * MSS, false, HostModel::ideal()).flows.row(0).drops, 0);
}

/// The same on every run, with the presets, under an incast of many connections each way.
#[test]
fn every_preset_delivers_an_incast_and_repeats_itself() {
    for preset in fanin_sim::hosts::HOST_PRESETS {
        let go = || {
            let mut spec = star(16, Rate::gbps(10), Duration::us(5), Some(fanin_units::QueueLimit::Packets(100)), None);
            spec.hosts = (preset.model)();
            let stack = Stack { tso: spec.hosts.tso, ..Stack::linux() };
            let t = transport(&mut spec, "cubic", stack);
            for i in 0..16 {
                let f = flow(&mut spec, i, t);
                message(&mut spec, f, 64_000, Duration::ZERO);
            }
            let r = run(&spec);
            r.messages.iter().map(|m| m.done_ps.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(go(), go(), "{}", preset.name);
    }
}

/// Two connections whose SYN/ACKs one poll brings: both are acknowledged before an application writes.
#[test]
fn applications_run_when_a_poll_is_over() {
    let mut spec = star(1, Rate::gbps(10), Duration::us(50), None, None);
    spec.hosts = HostModel { interrupt_delay: Duration::us(100), ..HostModel::ideal() };
    let t = transport(
        &mut spec,
        "reno",
        Stack { send_jitter: Duration::ZERO, connect_time: Duration::ZERO, ..Stack::linux() },
    );
    for _ in 0..2 {
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 100, Duration::ZERO);
    }
    spec.trace.packets = vec![LinkId(2)];
    let p = run(&spec).traces.packets;
    let payloads: Vec<u32> = (0..p.seq.len()).filter(|&i| p.event[i] == ACCEPTED).map(|i| p.payload[i]).collect();
    assert_eq!(payloads, [0, 0, 0, 0, 100, 100]);
}
