//! The counts of tshark, for every capture in the index.

use crate::common::{csv, run};
use fanin_capture::CaptureError;

/// Where we differ from tshark, and why.
const DIFFER: [(&str, &str, u64); 4] = [
    // tshark lists three custom blocks of these files as packets.
    ("pcapngtest_le_202.pcapng", "packets", 8),
    ("pcapngtest_be_202.pcapng", "packets", 8),
    // tshark believes the damaged original length; the IP header says the truth (the sum is that of the undamaged file).
    ("bad/own_len_smaller_than_caplen.pcap", "tcp_payload_bytes", 316_712),
    // tshark counts 1476 B of payload for packet 62, whose TCP header claims to be 4 bytes long.
    ("bad/own_bad_header_lengths.pcap", "tcp_payload_bytes", 315_228 - 1_476),
];

#[test]
fn every_capture_has_the_packets_connections_and_payload_that_tshark_counts() {
    let index = csv("index.csv");
    assert!(index.len() > 70, "the index is not complete");
    for row in index {
        let file = &row["file"];
        let want = |column: &str| {
            let differs = DIFFER.iter().find(|d| d.0 == file && d.1 == column);
            differs.map_or_else(|| row[column].parse::<u64>().unwrap(), |d| d.2)
        };
        let wanted = ["packets", "tcp_packets", "tcp_connections", "tcp_payload_bytes"].map(want);
        let found = match run(file) {
            Ok(a) => {
                let s = &a.summary;
                assert_eq!(a.connections.len() as u64, s.connections, "{file}");
                let both = |c: fanin_capture::Connection| {
                    let side = |n: &fanin_capture::DirectionStats| n.payload_bytes + n.mirrored_bytes;
                    side(&c.to_server) + side(&c.to_client)
                };
                assert_eq!(a.connections.iter().map(both).sum::<u64>(), s.payload_bytes, "{file}");
                [s.packets, s.tcp_packets, s.connections, s.payload_bytes]
            }
            Err(CaptureError::NoTcp { packets, .. }) => [packets, 0, 0, 0],
            Err(CaptureError::UnknownLinktype { .. }) => [wanted[0], 0, 0, 0],
            Err(_) => [0; 4],
        };
        assert_eq!(found, wanted, "{file}");
    }
}

#[test]
fn durations_are_those_of_the_time_stamps() {
    for row in csv("index.csv").iter().filter(|r| !r["file"].starts_with("bad/")) {
        let Ok(a) = run(&row["file"]) else { continue };
        let wanted = row["duration_s"].parse::<f64>().unwrap();
        // The index gives whole microseconds.
        let found = a.summary.duration_ns as f64 / 1e9;
        assert!((found - wanted).abs() < 2e-6, "{}: {found} s, not {wanted} s", row["file"]);
    }
}

#[test]
fn payload_is_unique_or_retransmitted_or_a_probe_in_every_direction() {
    for row in csv("index.csv") {
        let Ok(a) = run(&row["file"]) else { continue };
        for c in a.connections.iter() {
            for n in [&c.to_server, &c.to_client] {
                let parts = n.unique_bytes + n.retransmitted_bytes + n.keepalive_bytes;
                assert_eq!(n.payload_bytes, parts, "{} connection {}", row["file"], c.connection);
            }
        }
        let trains: u64 = a.trains.iter().map(|t| t.bytes).sum();
        let unique: u64 = a.connections.iter().map(|c| c.to_server.unique_bytes + c.to_client.unique_bytes).sum();
        assert_eq!(trains, unique, "{}: every byte is in one train", row["file"]);
    }
}

#[test]
fn turns_hold_no_byte_that_was_neither_seen_nor_missing() {
    for row in csv("index.csv") {
        let Ok(a) = run(&row["file"]) else { continue };
        let turns: u64 = a.turns.iter().map(|t| t.request_bytes + t.response_bytes).sum();
        let sides = a.connections.iter().flat_map(|c| [c.to_server, c.to_client]);
        let there: u64 = sides.map(|n| n.unique_bytes + n.missing_bytes).sum();
        assert!(turns <= there, "{}: {turns} B in turns, {there} B in the connections", row["file"]);
    }
}
