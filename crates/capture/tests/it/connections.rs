//! Small conversations written by hand, with the answer worked out beside them.

use crate::common::run_bytes;
use fanin_capture::write::{Endpoint, Flags, PcapWriter, Segment, TcpOptions};
use fanin_capture::{
    Analysis, Burst, Direction, Gap, Options, Sink, Train, Turn, Warning, analyse_into, analyse_reader,
};
use fanin_units::{Duration, Time};
use std::ops::ControlFlow;
use std::path::Path;

const CLIENT: Endpoint = Endpoint::host(0, 40_000);
const SERVER: Endpoint = Endpoint::host(1, 80);
const ACK: Flags = Flags::ACK;

/// A capture in the making. The tap is 10 us from the client and 20 us from the server.
pub struct Script {
    file: PcapWriter<Vec<u8>>,
    ids: [u16; 2],
}

impl Script {
    pub fn new() -> Script {
        Script { file: PcapWriter::new(Vec::new(), None).unwrap(), ids: [0, 0] }
    }

    pub fn packet(&mut self, us: u64, segment: Segment<'_>) -> &mut Script {
        let id = &mut self.ids[usize::from(segment.from != CLIENT)];
        *id = id.wrapping_add(1);
        let mut bytes = Vec::new();
        let length = Segment { ip_id: *id, ..segment }.headers(&mut bytes);
        self.file.packet(Time::ZERO + Duration::us(us), &bytes, length).unwrap();
        self
    }

    /// By a sender that numbers no packets.
    fn unnumbered(&mut self, us: u64, segment: Segment<'_>) {
        let mut bytes = Vec::new();
        let length = segment.headers(&mut bytes);
        self.file.packet(Time::ZERO + Duration::us(us), &bytes, length).unwrap();
    }

    pub fn up(&mut self, us: u64, seq: u32, ack: u32, payload: u32, flags: Flags) -> &mut Script {
        self.packet(us, Segment { seq, ack, payload, flags, ..Segment::between(CLIENT, SERVER) })
    }

    pub fn down(&mut self, us: u64, seq: u32, ack: u32, payload: u32, flags: Flags) -> &mut Script {
        self.packet(us, Segment { seq, ack, payload, flags, ..Segment::between(SERVER, CLIENT) })
    }

    /// Three packets from `us` on; data may begin at sequence number 1 both ways.
    pub fn open(&mut self, us: u64) -> &mut Script {
        self.up(us, 0, 0, 0, Flags::SYN).down(us + 20, 0, 1, 0, Flags::SYN | ACK).up(us + 30, 1, 1, 0, ACK)
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        std::mem::replace(self, Script::new()).file.finish().unwrap()
    }

    pub fn analyse(&mut self) -> Analysis {
        run_bytes(&self.bytes()).unwrap()
    }

    /// The same, with another gap between trains.
    fn analyse_with(&mut self, gap: Duration) -> Analysis {
        let options = Options { gap: Gap::Fixed(gap), ..Options::default() };
        analyse_reader(&self.bytes()[..], Path::new("bytes"), None, &options, &mut |_| ControlFlow::Continue(()))
            .unwrap()
    }
}

#[test]
fn the_same_ports_with_another_syn_are_another_connection() {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 10, ACK);
    // The same SYN again is a retransmission; another number is another connection; so is the same number after a FIN.
    s.up(200, 0, 0, 0, Flags::SYN);
    s.up(300, 7_000, 0, 0, Flags::SYN).up(310, 7_001, 1, 0, ACK | Flags::FIN);
    s.up(400, 7_000, 0, 0, Flags::SYN);
    let a = s.analyse();
    let syns: Vec<u32> = a.connections.iter().map(|c| c.to_server.syn).collect();
    assert_eq!(syns, [2, 1, 1]);
    assert_eq!(
        a.connections.get(0).unwrap().handshake_rtt_ns,
        None,
        "after a second SYN it is not known which was answered"
    );
}

/// Requests of 100 bytes and answers of 3 segments; the last two are acknowledged at once, or with what the client sends 15 ms later.
fn answers_acknowledged_late(fin: bool) -> Vec<Option<u64>> {
    let mut s = Script::new();
    s.open(0);
    let (mut asked, mut answered) = (1, 1);
    for n in 0..4 {
        let us = 1_000 + 15_000 * n;
        s.up(us, asked, answered, 100, ACK | Flags::PSH);
        asked += 100;
        for k in 0..3 {
            let flags = if k == 2 { ACK | Flags::PSH } else { ACK };
            s.down(us + 500 + 12 * k, answered, asked, 1_448, flags);
            answered += 1_448;
            if k == 1 {
                s.up(us + 515, asked, answered, 0, ACK);
            }
        }
    }
    if fin {
        s.up(61_000, asked, answered, 0, ACK | Flags::FIN);
    }
    s.analyse().workload(None).unwrap().connections[0].messages.iter().map(|m| m.took_ns).collect()
}

#[test]
fn an_answer_has_come_before_its_receiver_says_so_by_the_way() {
    for took in answers_acknowledged_late(true).into_iter().chain(answers_acknowledged_late(false)) {
        // The last byte passes 524 us after the request, and the client is 10 us away; the pause of its user is no part of that.
        assert!((524_000..=550_000).contains(&took.unwrap()), "{took:?} ns");
    }
}

#[test]
fn the_sender_of_a_syn_is_the_client_whatever_the_ports() {
    let mut s = Script::new();
    s.packet(0, Segment { flags: Flags::SYN, ..Segment::between(SERVER, CLIENT) });
    assert_eq!(s.analyse().connections.get(0).unwrap().client_port, 80);
    s.packet(0, Segment { flags: Flags::SYN | ACK, ack: 1, ..Segment::between(CLIENT, SERVER) });
    assert_eq!(s.analyse().connections.get(0).unwrap().client_port, 80);
    s.down(0, 5, 5, 100, ACK);
    assert_eq!(s.analyse().connections.get(0).unwrap().client_port, 40_000);
}

/// Request at 100; response of two segments; acknowledged at 170; next request at 1170.
fn two_turns(s: &mut Script) {
    s.open(0).up(100, 1, 1, 50, ACK);
    s.down(150, 1, 51, 1000, ACK).down(160, 1001, 51, 500, ACK).up(170, 51, 1501, 0, ACK);
    s.up(1170, 51, 1501, 60, ACK).down(1220, 1501, 111, 200, ACK);
}

#[test]
fn think_time_counts_from_the_acknowledgement_and_service_time_leaves_the_way_to_the_server_out() {
    let mut s = Script::new();
    two_turns(&mut s);
    let a = s.analyse();
    assert_eq!(a.turns.len(), 2);
    let [first, second] = [a.turns[0], a.turns[1]];
    assert_eq!((first.request_bytes, first.response_bytes, first.think_ns), (50, 1500, None));
    // The request passed at 100, and it takes 20 us to the server and back: 150 - 100 - 20.
    assert_eq!(first.service_ns, Some(30_000));
    assert_eq!(first.response_acked_ns, Some(170_000));
    assert_eq!(second.think_ns, Some(1_000_000));
    assert_eq!((second.request_bytes, second.response_bytes, second.overlapped), (60, 200, false));
}

#[test]
fn a_delayed_acknowledgement_is_not_taken_for_the_arrival_of_the_data() {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 50, ACK).down(150, 1, 51, 1000, ACK);
    // The client had the response after 10 us (half of the handshake on its side) but kept its ACK for 40 ms; its next request is 60 ms later.
    s.up(40_150, 51, 1001, 0, ACK).up(60_150, 51, 1001, 50, ACK).down(60_200, 1001, 101, 10, ACK);
    assert_eq!(s.analyse().turns[1].think_ns, Some(59_990_000));
}

#[test]
fn an_answer_whose_first_flight_was_lost_says_nothing_of_its_servers_time() {
    let answered = |next: u32| {
        let mut s = Script::new();
        s.open(0).up(100, 1, 1, 50, ACK).down(120, 1, 51, 0, ACK);
        // The request again, and an empty answer to it with the place that its sender has reached; then the first data that comes through.
        s.up(200_100, 1, 1, 50, ACK).down(200_120, next, 51, 0, ACK).down(208_000, 1, 51, 1000, ACK);
        s.analyse().turns[0].response_front.lost
    };
    assert!(answered(10_001), "ten segments were sent that did not pass");
    assert!(!answered(1), "nothing was sent before");
}

#[test]
fn a_response_that_was_repaired_ends_with_its_repair() {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 50, ACK).down(150, 1, 51, 1000, ACK).down(160, 1001, 51, 1000, ACK | Flags::PSH);
    // The second segment is lost behind the tap; after 200 ms it comes again.
    s.up(165, 51, 1001, 0, ACK).down(200_160, 1001, 51, 1000, ACK | Flags::PSH).up(200_170, 51, 2001, 0, ACK);
    s.up(201_170, 51, 2001, 50, ACK).down(201_200, 2001, 101, 10, ACK);
    let a = s.analyse();
    assert_eq!((a.turns[0].response_end_ns, a.turns[0].retransmitted_bytes), (Some(200_160_000), 1000));
    assert_eq!((a.turns[0].response_bytes, a.turns[0].response_pieces), (2000, 1));
    assert_eq!(a.turns[1].think_ns, Some(1_000_000), "the timeout is not think time");
    assert_eq!(a.connections.get(0).unwrap().to_client.retransmitted_packets, 1);
    // The gap makes a train of its own, of which every byte was there before.
    let trains: Vec<(u64, u64)> = a
        .trains
        .iter()
        .filter(|t| t.direction == Direction::ToClient)
        .map(|t| (t.bytes, t.retransmitted_bytes))
        .collect();
    assert_eq!(trains, [(2000, 0), (0, 1000), (10, 0)]);
}

/// A response of 3000 bytes with silence of `pause_us` after the first 2000, acknowledged meanwhile or not.
fn paused(pause_us: u64, last_flags: Flags, acked: bool, lost_before_tap: bool) -> Analysis {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 50, ACK).down(150, 1, 51, 1000, ACK).down(160, 1001, 51, 1000, last_flags);
    s.up(170, 51, if acked { 2001 } else { 1 }, 0, ACK);
    if lost_before_tap {
        s.ids[1] += 1;
    }
    s.down(170 + pause_us, 2001, 51, 1000, ACK | Flags::PSH).up(180 + pause_us, 51, 3001, 0, ACK);
    s.analyse()
}

#[test]
fn a_pause_is_the_applications_only_when_nothing_else_held_the_data_back() {
    let push = ACK | Flags::PSH;
    let a = paused(5_000, push, true, false);
    let pieces: Vec<(u64, u64)> = a.bursts.iter().map(|b| (b.bytes, b.pause_ns)).collect();
    assert_eq!(pieces, [(2000, 0), (1000, 5_000_000)]);
    assert_eq!(a.turns[0].response_pieces, 2);
    let w = a.workload(None).unwrap();
    assert_eq!(w.connections[0].messages[0].pieces.iter().map(|p| (p.bytes, p.pause_ns)).collect::<Vec<_>>(), pieces);

    assert_eq!(paused(1_000, push, true, false).bursts, [], "shorter than any pause that can be told");
    assert_eq!(paused(5_000, ACK, true, false).bursts, [], "the application had written more");
    assert_eq!(paused(5_000, push, false, false).bursts, [], "two segments are not acknowledged");
    assert_eq!(paused(200_000, push, true, true).bursts, [], "a segment was lost before the tap");
}

#[test]
fn a_pause_of_more_than_two_milliseconds_is_told_however_short_the_gap_between_trains() {
    let paused = |us: u64| {
        let mut s = Script::new();
        s.open(0).up(100, 1, 1, 50, ACK).down(150, 1, 51, 1000, ACK | Flags::PSH).up(160, 51, 1001, 0, ACK);
        s.down(150 + us, 1001, 51, 1000, ACK | Flags::PSH).up(160 + us, 51, 2001, 0, ACK);
        s.analyse_with(Duration::us(50)).bursts.len()
    };
    assert_eq!((paused(2_010), paused(2_011)), (0, 2));
}

#[test]
fn without_a_handshake_or_numbers_what_is_three_milliseconds_late_was_reordered() {
    let late = |us: u64| {
        let mut s = Script::new();
        let mut down = |us, seq| {
            let tcp = Segment { seq, ack: 1, payload: 1000, flags: ACK, ..Segment::between(SERVER, CLIENT) };
            s.unnumbered(us, tcp);
        };
        down(0, 1);
        down(10, 2001);
        down(10 + us, 1001);
        let found = s.analyse();
        let side = found.connections.get(0).unwrap().to_client;
        side.refilled_packets
    };
    assert_eq!((late(3_000), late(3_001)), (0, 1));
}

#[test]
fn a_pause_within_the_spread_of_round_trips_is_the_networks() {
    let push = ACK | Flags::PSH;
    let with_a_round_trip_of = |queued: u64| {
        let mut s = Script::new();
        s.open(0).up(100, 1, 1, 50, ACK).down(150, 1, 51, 1000, ACK).down(160, 1001, 51, 1000, push);
        // Both were held up on their way back and forth; then another response, with a silence of 5 ms in it.
        s.up(160 + queued, 51, 2001, 50, ACK);
        let t = 300 + queued;
        s.down(t, 2001, 101, 1000, ACK).down(t + 10, 3001, 101, 1000, push).up(t + 30, 101, 4001, 0, ACK);
        s.down(t + 5_030, 4001, 101, 1000, push).up(t + 5_050, 101, 5001, 0, ACK);
        s.analyse().bursts.len()
    };
    assert_eq!(with_a_round_trip_of(20), 2);
    assert_eq!(with_a_round_trip_of(6_000), 0);
}

#[test]
fn a_server_that_speaks_first_has_a_turn_without_request() {
    let mut s = Script::new();
    s.open(0).down(100, 1, 1, 30, ACK).up(150, 1, 31, 20, ACK).down(190, 31, 21, 40, ACK);
    let a = s.analyse();
    assert_eq!(a.turns.iter().map(|t| (t.request_bytes, t.response_bytes)).collect::<Vec<_>>(), [(0, 30), (20, 40)]);
    assert_eq!(a.turns[0].request_start_ns, None);
}

#[test]
fn a_request_sent_before_the_response_was_complete_is_marked() {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 50, ACK).down(150, 1, 51, 1000, ACK).down(160, 1001, 51, 1000, ACK);
    s.up(165, 51, 1001, 50, ACK).down(200, 2001, 101, 1000, ACK);
    let a = s.analyse();
    assert_eq!(a.turns.iter().map(|t| t.overlapped).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn both_halves_of_the_path_make_the_round_trip() {
    let mut s = Script::new();
    s.open(0)
        .up(100, 1, 1, 50, ACK)
        .down(150, 1, 51, 1000, ACK)
        .down(152, 1001, 51, 1000, ACK)
        .up(190, 51, 2001, 0, ACK);
    let n = s.analyse().connections.get(0).unwrap().to_client;
    // Behind the tap 40 us from the first segment to its acknowledgement; before it the 20 us of the handshake; least behind: 10 us.
    assert_eq!((n.rtt_samples, n.smoothed_rtt_ns, n.min_rtt_ns), (1, Some(60_000), Some(30_000)));
}

#[test]
fn keep_alive_probes_are_neither_retransmissions_nor_trains() {
    let mut s = Script::new();
    two_turns(&mut s);
    s.up(1230, 111, 1701, 0, ACK);
    s.down(500_000, 1700, 111, 1, ACK).up(500_010, 111, 1701, 0, ACK).down(600_000, 1700, 111, 0, ACK);
    let a = s.analyse();
    let n = a.connections.get(0).unwrap().to_client;
    assert_eq!((n.keepalive_packets, n.keepalive_bytes, n.retransmitted_bytes), (2, 1, 0));
    assert_eq!(a.trains.iter().map(|t| t.end_ns).max(), Some(1_220_000));
    assert_eq!(a.warnings, []);
}

#[test]
fn a_copy_with_the_same_identification_counts_once_and_a_retransmission_does_not() {
    let mut s = Script::new();
    two_turns(&mut s);
    s.ids[1] -= 1;
    s.down(1225, 1501, 111, 200, ACK).down(1235, 1501, 111, 200, ACK);
    let a = s.analyse();
    let n = a.connections.get(0).unwrap().to_client;
    assert_eq!((n.mirrored_packets, n.mirrored_bytes, n.retransmitted_packets), (1, 200, 1));
    assert!(matches!(a.warnings[..], [Warning::Mirrored { packets: 1, first: 10 }]));
}

#[derive(Default)]
struct Counting {
    turns: usize,
    trains: usize,
    bursts: usize,
}

impl Sink for Counting {
    fn turn(&mut self, _: Turn) {
        self.turns += 1;
    }
    fn train(&mut self, _: Train) {
        self.trains += 1;
    }
    fn burst(&mut self, _: Burst) {
        self.bursts += 1;
    }
}

#[test]
fn a_sink_gets_every_row_as_it_ends_and_nothing_is_kept() {
    let name = "http_onoff_8to1.pcap.gz";
    let kept = crate::common::run(name).unwrap();
    let file = std::fs::File::open(crate::common::data().join(name)).unwrap();
    let (mut sink, mut early) = (Counting::default(), 0);
    let found = analyse_into(file, Path::new(name), None, &Options::default(), &mut sink, &mut |_| {
        early += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((sink.turns, sink.trains, sink.bursts), (kept.turns.len(), kept.trains.len(), kept.bursts.len()));
    assert!(found.turns.is_empty() && found.trains.is_empty());
    assert_eq!(found.connections, kept.connections);
    assert!(early > 1);
}

/// Twenty responses of two segments each; the second segment of each is late by 250 ms, and its sender sends it again after 200. With `told`, the client
/// says that it came twice, else it has acknowledged both before the second copy passes.
fn late(told: bool) -> Script {
    let mut s = Script::new();
    s.open(0);
    for n in 0..20_u32 {
        let (us, seq, asked) = (100_000 + u64::from(n) * 1_000_000, 1 + n * 2000, 1 + n * 50);
        s.up(us, asked, seq, 50, ACK).down(us + 50, seq, asked + 50, 1000, ACK);
        s.down(us + 250_000, seq + 1000, asked + 50, 1000, ACK);
        if !told {
            s.up(us + 250_010, asked + 50, seq + 2000, 0, ACK);
        }
        s.down(us + 250_040, seq + 1000, asked + 50, 1000, ACK);
        let twice = [(seq + 1000, seq + 2000)];
        let blocks: &[(u32, u32)] = if told { &twice } else { &[] };
        let tcp = Segment::between(CLIENT, SERVER);
        let options = TcpOptions { sack: blocks, ..tcp.options };
        s.packet(us + 250_050, Segment { seq: asked + 50, ack: seq + 2000, flags: ACK, options, ..tcp });
    }
    s
}

#[test]
fn what_was_only_late_tells_on_which_side_of_the_tap_it_was_held_up() {
    for told in [false, true] {
        let a = late(told).analyse();
        let seen = a.connections.get(0).unwrap().to_client;
        assert_eq!((seen.retransmitted_packets, seen.spurious_packets), (20, 20), "{told}");
        // Twenty losses behind the tap would have said that the queue is there. Where the second copy passes behind an acknowledgement, its sender did
        // not know of it yet; where before, the handshake tells, which takes 10 of its 30 us on the client's side.
        assert_eq!(a.behind_the_queue(a.connections.get(0).unwrap().client_ip), Some(!told));
    }
}

/// A server writes a head, and what follows leaves when its acknowledgement comes, 40 ms later: Nagle's rule and a delayed acknowledgement (RFC 9293,
/// sections 3.7.4 and 3.8.6.3). A window of one segment holds back full segments, and whatever is behind them.
#[test]
fn what_waits_for_the_delayed_acknowledgement_of_a_short_segment_pauses_if_it_is_short() {
    let pauses = |head: u32, rest: u32| {
        let mut s = Script::new();
        s.open(0).up(1_000, 1, 1, 50, ACK).down(1_050, 1, 51, 1448, ACK | Flags::PSH).up(1_060, 51, 1449, 0, ACK);
        s.up(2_000, 51, 1449, 50, ACK).down(2_050, 1449, 101, head, ACK | Flags::PSH);
        s.up(42_050, 101, 1449 + head, 0, ACK).down(42_080, 1449 + head, 101, rest, ACK | Flags::PSH);
        s.up(42_090, 101, 1449 + head + rest, 0, ACK);
        s.analyse().bursts.iter().map(|b| b.pause_ns).collect::<Vec<_>>()
    };
    assert_eq!((pauses(242, 5), pauses(242, 1448), pauses(1448, 5)), (vec![0, 40_030_000], vec![], vec![]));
}

/// An answer of four segments whose second one comes behind the third and fourth. Its receiver tells of these at once, and the sender repeats the
/// second (RFC 8985: what was sent later is there); of another answer, in order, the last segment is repeated by a timer.
#[test]
fn what_is_repeated_because_the_network_changed_the_order_is_told_from_what_a_timer_repeats() {
    let mut s = Script::new();
    s.open(0).up(1_000, 1, 1, 50, ACK);
    for (us, segment) in [(1_050, 0), (1_060, 2), (1_061, 3), (1_063, 1)] {
        // By the numbers of the packets it left second.
        s.ids[1] = 1 + segment as u16;
        s.down(us, 1 + segment * 1000, 51, 1000, ACK);
    }
    s.ids[1] = 5;
    s.up(1_064, 51, 4001, 0, ACK).down(1_090, 1001, 51, 1000, ACK).up(1_091, 51, 4001, 0, ACK);
    s.up(50_000, 51, 4001, 50, ACK).down(50_050, 4001, 101, 1000, ACK).down(50_060, 5001, 101, 1000, ACK);
    s.up(50_061, 101, 6001, 0, ACK).down(250_060, 5001, 101, 1000, ACK).up(250_061, 101, 6001, 0, ACK);
    let seen = s.analyse().connections.get(0).unwrap().to_client;
    assert_eq!((seen.out_of_order_packets, seen.spurious_packets, seen.overtaken_packets), (1, 2, 1));
}

/// Three segments pass the tap in order, the client acknowledges the first twice and then, unless the second was lost, all; its sender repeats the second,
/// which the client then says came twice.
#[test]
fn a_change_of_order_behind_the_tap_is_told_by_who_had_missed_what_came_after_all() {
    let overtaken = |missed: bool| {
        let mut s = Script::new();
        s.open(0).up(1_000, 1, 1, 50, ACK);
        (0..3).for_each(|n| _ = s.down(1_050 + u64::from(n), 1 + n * 1000, 51, 1000, ACK));
        s.up(1_060, 51, 1001, 0, ACK);
        if missed {
            s.up(1_061, 51, 1001, 0, ACK);
        }
        s.down(1_063, 1001, 51, 1000, ACK).up(1_064, 51, 3001, 0, ACK);
        let (tcp, twice) = (Segment::between(CLIENT, SERVER), [(1001, 2001)]);
        let options = TcpOptions { sack: &twice, ..tcp.options };
        s.packet(1_080, Segment { seq: 51, ack: 3001, flags: ACK, options, ..tcp });
        let seen = s.analyse().connections.get(0).unwrap().to_client;
        (seen.spurious_packets, seen.overtaken_packets)
    };
    assert_eq!((overtaken(true), overtaken(false)), ((1, 1), (1, 0)));
}

/// Twenty answers, each acknowledged after 20 us. The second copy, which its sender's timer sends too soon, passes so many microseconds later.
fn crossing(after: u64) -> u64 {
    let mut s = Script::new();
    s.open(0);
    for n in 0..20_u32 {
        let (us, seq, asked) = (100_000 + u64::from(n) * 10_000, 1 + n * 1000, 1 + n * 50);
        s.up(us, asked, seq, 50, ACK).down(us + 50, seq, asked + 50, 1000, ACK).up(
            us + 70,
            asked + 50,
            seq + 1000,
            0,
            ACK,
        );
        s.down(us + 70 + after, seq, asked + 50, 1000, ACK);
    }
    s.analyse().connections.get(0).unwrap().to_client.held_up_packets
}

#[test]
fn a_copy_that_crosses_the_acknowledgement_of_the_first_was_held_up_nowhere() {
    assert_eq!((crossing(20), crossing(21)), (0, 20));
}

/// A request, and its answer of so many bytes and seven more. The client acknowledges the last seven (and all before these, if it has not `acked` them) only
/// when the server has sent them once more, 10 ms later. With `told`, it says that it had these.
fn held_back(bytes: u32, acked: bool, told: bool) -> [Option<u64>; 3] {
    let mut s = Script::new();
    s.open(0).up(100_000, 1, 1, 50, ACK).down(100_050, 1, 51, bytes, ACK);
    if acked {
        s.up(100_060, 51, 1 + bytes, 0, ACK);
    }
    s.down(100_060, 1 + bytes, 51, 7, ACK).down(110_000, 1 + bytes, 51, 7, ACK);
    let twice = [(1 + bytes, 8 + bytes)];
    let blocks: &[(u32, u32)] = if told { &twice } else { &[] };
    let tcp = Segment::between(CLIENT, SERVER);
    let options = TcpOptions { sack: blocks, ..tcp.options };
    s.packet(110_010, Segment { seq: 51, ack: 8 + bytes, flags: ACK, options, ..tcp });
    s.up(200_000, 51, 8 + bytes, 50, ACK);
    let turn = s.analyse().turns[0];
    [turn.response_end_ns, turn.response_delivered_ns, turn.response_acked_ns].map(|ns| ns.map(|ns| ns / 1_000))
}

#[test]
fn an_answer_that_was_repeated_for_a_delayed_acknowledgement_had_come_with_its_first_copy() {
    assert_eq!(held_back(1_000, true, true), [Some(100_060), Some(100_070), Some(110_010)]);
    let late = [Some(110_000), Some(110_010), Some(110_010)];
    assert_eq!(held_back(1_000, true, false), late, "it may have been lost behind the tap");
    // A full segment, of 9000 bytes where no size was offered, may wait for the next one, and more are acknowledged at once.
    assert_eq!(held_back(8_993, false, true)[0], Some(100_060));
    assert_eq!(held_back(8_994, false, true), late, "its receiver was stalled");
}

/// Retransmissions of which the capture shows when a timer went off, where the last segment is sent again after so long.
fn timers_after(us: u64) -> u32 {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 100, ACK | Flags::PSH);
    s.down(150, 1, 101, 1_448, ACK).down(162, 1_449, 101, 1_448, ACK | Flags::PSH).up(180, 101, 1_449, 0, ACK);
    s.down(162 + us, 1_449, 101, 1_448, ACK | Flags::PSH).up(200 + us, 101, 2_897, 0, ACK);
    let links = s.analyse().links;
    links
        .iter()
        .find(|link| link.receiver == "10.0.0.1".parse::<std::net::IpAddr>().unwrap())
        .map_or(0, |link| link.ticks.moments)
}

#[test]
fn what_is_sent_again_after_three_milliseconds_of_silence_was_sent_by_a_timer() {
    assert_eq!((timers_after(2_900), timers_after(3_100)), (0, 1));
}

/// The server's numbers jump by so many bytes that are not in the file, which has seven packets.
fn workload_without(bytes: u32) -> bool {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 100, ACK | Flags::PSH).down(200, 1, 101, 1_000, ACK | Flags::PSH);
    s.down(300, 1_001 + bytes, 101, 1_000, ACK | Flags::PSH).up(400, 101, 2_001 + bytes, 0, ACK);
    s.analyse().workload(None).is_ok()
}

#[test]
fn a_packet_vouches_for_256_kib_that_are_not_in_the_file() {
    assert!(workload_without(7 * 256 * 1024) && !workload_without(7 * 256 * 1024 + 1));
}

#[test]
fn an_application_that_writes_within_100_us_of_its_handshake_writes_at_once() {
    // The handshake takes 30 us.
    let at_once = |us: u64| {
        let mut s = Script::new();
        s.open(0).up(30 + us, 1, 1, 100, ACK | Flags::PSH).down(90_000, 1, 101, 1_000, ACK | Flags::PSH);
        s.analyse().workload(None).unwrap().connections[0].writes_at_once
    };
    assert!(at_once(100) && !at_once(101));
}

/// What a server wrote in answer to each of 12 requests: a header of 200 bytes, and a body of 2000 whose first packet comes 40 us later. Of these the link
/// takes 11.68 us for its 1460 bytes: its rate is not known, and 1 Gbps is presumed.
/// The header of every third is lost and sent again; `flags` are on it.
fn headers_before_bodies(flags: Flags) -> Vec<Vec<(u64, u64, bool)>> {
    let mut s = Script::new();
    s.open(0);
    for n in 0..12 {
        let (at, asked, had) = (1_000 * (n + 1), 1 + 50 * n as u32, 1 + 2200 * n as u32);
        s.up(at, asked, had, 50, ACK | Flags::PSH);
        if n % 3 == 0 {
            s.ids[1] += 1;
        } else {
            s.down(at + 100, had, asked + 50, 200, flags);
        }
        s.down(at + 140, had + 200, asked + 50, 1460, ACK).down(
            at + 152,
            had + 1660,
            asked + 50,
            540,
            ACK | Flags::PSH,
        );
        if n % 3 == 0 {
            s.up(at + 160, asked + 50, had, 0, ACK).down(at + 400, had, asked + 50, 200, flags);
        }
        s.up(at + 410, asked + 50, had + 2200, 0, ACK);
    }
    let workload = s.analyse().workload(None).unwrap();
    let messages = workload.connections[0].messages.iter();
    messages.map(|m| m.pieces.iter().map(|p| (p.bytes, p.pause_ns, p.straight_on)).collect()).collect()
}

#[test]
fn a_header_that_left_by_itself_was_written_before_its_body() {
    let header_and_body = [(200, 0, false), (2000, 28_320, true)];
    assert_eq!(headers_before_bodies(ACK | Flags::PSH), vec![header_and_body; 12], "lost ones, too");
    assert_eq!(headers_before_bodies(ACK), vec![[(2200, 0, false)]; 12], "no write ended there");
}

#[test]
fn a_port_that_others_share_is_the_servers_even_after_a_first_answer() {
    // Of two ports the lower one is taken for the server's.
    let server = Endpoint::host(1, 50_051);
    let mut s = Script::new();
    let mut exchange = |at: u64, client: Endpoint, had: u32| {
        let (asked, answered) = (1 + 50 * had, 1 + 1000 * had);
        let ask = Segment { seq: asked, ack: answered, payload: 50, flags: ACK, ..Segment::between(client, server) };
        let answer =
            Segment { seq: answered, ack: asked + 50, payload: 1000, flags: ACK, ..Segment::between(server, client) };
        s.packet(at, ask).packet(at + 100, answer);
    };
    let (first, second) = (Endpoint::host(0, 40_000), Endpoint::host(0, 40_001));
    (0..3).for_each(|n| exchange(1_000 * u64::from(n), first, n));
    (3..9).for_each(|n| {
        exchange(1_000 * u64::from(n), first, n);
        exchange(1_000 * u64::from(n) + 500, second, n);
    });
    let a = s.analyse();
    assert!(
        a.connections.iter().all(|c| (c.client_port, c.server_port) == (first.port, 50_051) || c.client_port == 40_001)
    );
    let of_first = a.turns.iter().filter(|t| t.connection == 0 && t.request_bytes == 50 && t.response_bytes == 1000);
    assert!(of_first.count() >= 5);
}

#[test]
fn without_a_handshake_what_no_jumbo_frame_carries_was_merged() {
    let merged = |bytes: u32| {
        let mut s = Script::new();
        s.up(0, 1, 1, 100, ACK | Flags::PSH).down(100, 1, 101, bytes, ACK | Flags::PSH).up(200, 101, 1 + bytes, 0, ACK);
        s.analyse().warnings.iter().any(|w| matches!(w, Warning::MergedSegments { .. }))
    };
    assert!(merged(9_001) && !merged(9_000));
}

/// Pieces of an answer whose second segment is repaired after 7 ms and whose last one comes 208 ms later: whether its first copy had left before, and was
/// lost.
fn pieces(lost: bool) -> usize {
    let mut s = Script::new();
    s.open(0).up(100, 1, 1, 100, ACK | Flags::PSH).down(900, 1, 101, 1_448, ACK).up(901, 101, 1_449, 0, ACK);
    s.ids[1] += 1;
    s.down(1_100, 2_897, 101, 1_448, ACK | Flags::PSH).up(1_101, 101, 1_449, 0, ACK);
    s.ids[1] += u16::from(lost);
    s.down(8_000, 1_449, 101, 1_448, ACK).up(8_001, 101, 4_345, 0, ACK);
    s.down(216_000, 4_345, 101, 760, ACK | Flags::PSH).up(216_001, 101, 5_105, 0, ACK);
    s.analyse().workload(None).unwrap().connections[0].messages[0].pieces.len()
}

#[test]
fn what_was_lost_behind_a_repair_waits_for_a_timer_and_not_for_the_application() {
    assert_eq!((pieces(true), pieces(false)), (1, 2));
}

/// Connections to a server at this port, from before the capture on, each with three requests: of each the server's port and its requests of 100 bytes.
fn from_before(port: u16) -> Vec<(u16, u64)> {
    let mut s = Script::new();
    for n in 0..3_u32 {
        for (client, from) in [(40_000_u16, 0_u64), (45_000, 7), (58_000, 13)] {
            let (client, server) = (Endpoint::host(0, client), Endpoint::host(1, port));
            let (asked, answered, us) = (1 + 100 * n, 1 + 1_448 * n, 50_000 * u64::from(n) + from);
            let flags = ACK | Flags::PSH;
            let of = |seq, ack, payload, from, to| Segment { seq, ack, payload, flags, ..Segment::between(from, to) };
            s.packet(us, of(asked, answered, 100, client, server));
            s.packet(us + 5_000, of(answered, asked + 100, 1_448, server, client));
        }
    }
    let found = s.analyse();
    let asked = |n: u32| found.turns.iter().filter(|turn| turn.connection == n && turn.request_bytes == 100).count();
    (0..).zip(found.connections.iter()).map(|(n, c)| (c.server_port, asked(n) as u64)).collect()
}

#[test]
fn the_server_of_connections_that_are_older_than_the_capture_has_the_port_that_they_share() {
    assert_eq!(from_before(80), [(80, 3); 3]);
    assert_eq!(from_before(50_051), [(50_051, 3); 3]);
}
