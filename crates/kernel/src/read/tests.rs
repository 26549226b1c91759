use super::*;
use crate::traffic::{Packet, Tcp};
use fanin_fabric::record::Hop;
use fanin_player::log;
use fanin_sim::spec::LinkId;

const START: u64 = 1_000_000_000;
/// Bytes per segment: large, so that few make 4 GB.
const SIZE: u64 = 60_000;
const DELAY: u64 = 1_000_000;
const STEP: u64 = 10_000_000;

/// One long flow over a switch, with the packets at the switch's port to the receiver.
fn plan() -> Spec {
    let text = "[topology]\nkind = \"star\"\nsenders = 1\ndelay = \"1us\"\n[[workload]]\nkind = \"long\"\n\
                [run]\nduration = \"10s\"\n[measure]\nthroughput = \"10ms\"\npackets = [\"switch->client\", \"switch->s1\"]";
    fanin_scenario::Scenario::from_text(text, "one").unwrap().plan(1).unwrap()
}

fn link(spec: &Spec, from: &str, to: &str) -> LinkId {
    let name = |node: fanin_sim::spec::NodeId| spec.nodes[node.index()].name.as_str();
    let at = spec.links.iter().position(|l| name(l.from) == from && name(l.to) == to).unwrap();
    LinkId(at as u32)
}

/// The record of `segments` of [`SIZE`], each acknowledged, after an initial sequence number; those for which `lost` were never recorded.
fn traffic(spec: &Spec, isn: u32, segments: u64, lost: impl Fn(u64) -> bool) -> Traffic {
    let mut made = Traffic { bytes: Vec::new(), packets: Vec::new(), hops: Vec::new() };
    let to_receiver = [link(spec, "s1", "switch"), link(spec, "switch", "client")];
    let to_sender = [link(spec, "client", "switch"), link(spec, "switch", "s1")];
    let mut send = |time: u64, backward: bool, payload: u64, (seq, ack, flags): (u32, u32, u8)| {
        let number = made.packets.len() as u32;
        made.packets.push(Packet {
            connection: 0,
            backward,
            time,
            length: payload as u32 + 52,
            payload: payload as u32,
            headers: 0..0,
            sender: None,
            tcp: Some(Tcp { seq, ack, flags, window: 0, timestamps: None, sack: [0; 6] }),
        });
        for (turn, link) in if backward { to_sender } else { to_receiver }.into_iter().enumerate() {
            let at = time + turn as u64 * DELAY;
            made.hops.push(Hop {
                packet: number,
                link: link.0 as u16,
                fate: Fate::Accepted,
                time_ps: at,
                departure_ps: at,
            });
        }
    };
    send(START - 2 * STEP, false, 0, (isn, 0, Tcp::SYN));
    send(START - STEP, true, 0, (77, isn.wrapping_add(1), Tcp::SYN | Tcp::ACK));
    let wire = |offset: u64| isn.wrapping_add(1).wrapping_add(offset as u32);
    for n in (0..segments).filter(|&n| !lost(n)) {
        let time = START + n * STEP;
        send(time, false, SIZE, (wire(n * SIZE), 78, Tcp::ACK));
        send(time + STEP / 2, true, 0, (78, wire((n + 1) * SIZE), Tcp::ACK));
    }
    made
}

fn told(bytes_acked: u64, segments: u64) -> Log {
    Log {
        start_ns: START / 1000,
        end_ns: (START + (segments + 1) * STEP) / 1000,
        messages: vec![log::Message { release_ns: Some(START / 1000), ..log::Message::default() }],
        flows: vec![log::Flow { bytes_acked, ..log::Flow::default() }],
        ..Log::default()
    }
}

/// A little more than 2^32 bytes.
const MANY: u64 = (1 << 32) / SIZE + 100;

#[test]
fn a_flow_of_more_than_4_gb_is_delivered_and_its_acknowledgements_rise() {
    let spec = plan();
    let traffic = traffic(&spec, u32::MAX - 1000, MANY, |_| false);
    let got = results(&spec, &told(MANY * SIZE, MANY), &traffic).unwrap();
    assert_eq!(got.flows.row(0).bytes_sent, MANY * SIZE);
    assert_eq!(got.flows.row(0).bytes_delivered, MANY * SIZE);
    assert_eq!(got.traces.throughput.bytes.iter().sum::<u64>(), MANY * SIZE);
    let t = &got.traces.packets;
    for (data, last) in [(true, (MANY - 1) * SIZE), (false, MANY * SIZE)] {
        let of_kind = |&n: &usize| t.event[n] == 0 && (t.payload[n] > 0) == data;
        let positions: Vec<u64> = (0..t.seq.len()).filter(of_kind).map(|n| t.seq[n]).collect();
        assert!(positions.is_sorted());
        assert_eq!(positions.last(), Some(&last));
    }
}

#[test]
fn a_record_that_lacks_what_was_acknowledged_is_refused() {
    let spec = plan();
    let traffic = traffic(&spec, 5, 100, |n| n == 40);
    let error = results(&spec, &told(100 * SIZE, 100), &traffic).unwrap_err().to_string();
    assert!(error.contains("flow 0 saw 6000000 bytes acknowledged, and 2400000 arrived"), "{error}");
}

#[test]
fn what_arrives_between_the_end_and_the_asking_is_not_delivered_and_not_refused() {
    let spec = plan();
    let traffic = traffic(&spec, 5, 100, |_| false);
    // With a FIN.
    let mut log = told(100 * SIZE + 1, 100);
    log.end_ns = (START + 50 * STEP - STEP / 2) / 1000;
    let got = results(&spec, &log, &traffic).unwrap();
    assert_eq!(got.flows.row(0).bytes_delivered, 50 * SIZE);
}
