//! Conversations of each protocol as bytes, whole, cut and in any packets.

use super::{CLIENT, Data, Reader, SERVER};
use crate::way::Way;
use crate::{Call, Protocol, ReadCounts};
use proptest::prelude::*;

/// What one end writes at once.
pub(super) type Write = (usize, Vec<u8>);

/// Request and response bytes of each call, in order of requests.
type Sizes = Vec<(u64, u64)>;

/// Passes writes to a reader in packets of up to `mss` bytes, of which `kept` are stored; all calls, those that turns say included.
pub(super) fn read(writes: &[Write], mss: usize, kept: usize) -> (Vec<Call>, ReadCounts) {
    let mut reader = Reader::default();
    let (mut places, mut at, mut turn, mut spoke) = ([1_u64 << 40; 2], 0, 0, CLIENT);
    let mut calls = Vec::new();
    for (side, bytes) in writes {
        turn += u32::from(spoke == SERVER && *side == CLIENT);
        spoke = *side;
        at += 1_000_000;
        let packets = bytes.chunks(mss).count();
        for (n, packet) in bytes.chunks(mss).enumerate() {
            at += 10_000;
            let to = places[*side] + packet.len() as u64;
            let data = Data {
                side: *side,
                from: places[*side],
                to,
                other: places[1 - *side],
                stored: &packet[..kept.min(packet.len())],
                at,
                pushed: n + 1 == packets,
                acked: places[*side],
                turn,
                has_all: true,
            };
            places[*side] = to;
            if let Some(stretch) = reader.data(data) {
                calls.extend(stretch.calls);
            }
        }
        if *side == SERVER {
            reader.acknowledged(places[SERVER], Some(at), at + 50_000, true, None, Way::default());
        }
    }
    let (last, counts) = reader.finish(turn + 1);
    calls.extend(last.into_iter().flat_map(|s| s.calls));
    (calls, counts)
}

fn sizes(calls: &[Call]) -> Sizes {
    calls.iter().map(|call| (call.request_bytes, call.response_bytes)).collect()
}

fn get(path: usize) -> Vec<u8> {
    format!("GET /{path:0path$} HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\n\r\n").into_bytes()
}

fn ok(body: usize) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\nServer: nginx/1.24.0\r\nContent-Type: x/y\r\nContent-Length: {body}\r\n\r\n");
    [head.into_bytes(), vec![b'x'; body]].concat()
}

fn chunked(bodies: &[usize]) -> Vec<u8> {
    let mut all = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for body in bodies.iter().filter(|&&body| body > 0) {
        all.extend(format!("{body:x}\r\n").into_bytes());
        all.extend(vec![b'y'; *body]);
        all.extend(b"\r\n");
    }
    all.extend(b"0\r\n\r\n");
    all
}

fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
    let length = (payload as u32).to_be_bytes();
    let mut all = vec![length[1], length[2], length[3], kind, flags];
    all.extend(stream.to_be_bytes());
    all.extend(vec![0x79; payload]);
    all
}

/// A call of gRPC: a header block, then a message that ends the stream.
fn grpc_request(stream: u32) -> Vec<u8> {
    [frame(1, 4, stream, 8), frame(8, 0, stream, 4), frame(0, 1, stream, 23)].concat()
}

fn grpc_response(stream: u32, body: usize) -> Vec<u8> {
    let data: Vec<u8> =
        (0..body.div_ceil(16_384)).flat_map(|n| frame(0, 0, stream, (body - n * 16_384).min(16_384))).collect();
    [frame(1, 4, stream, 3), data, frame(1, 5, stream, 16)].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn preface() -> Vec<Write> {
    let client = [PREFACE.to_vec(), frame(4, 0, 0, 36), frame(8, 0, 0, 4)].concat();
    vec![(CLIENT, client), (SERVER, frame(4, 0, 0, 18)), (CLIENT, frame(4, 1, 0, 0)), (SERVER, frame(4, 1, 0, 0))]
}

fn bulk(text: usize) -> Vec<u8> {
    [format!("${text}\r\n").into_bytes(), vec![b'z'; text], b"\r\n".to_vec()].concat()
}

fn value(body: usize) -> Vec<u8> {
    [format!("VALUE k{body} 0 {body}\r\n").into_bytes(), vec![b'v'; body], b"\r\n".to_vec()].concat()
}

fn concat(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.into_iter().flatten().collect()
}

/// Requests of each protocol and their responses of these sizes.
fn exchanges(protocol: Protocol, bodies: &[usize]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let each = bodies.iter().enumerate();
    match protocol {
        Protocol::Http1 => each
            .map(|(n, &body)| (get(n % 40 + 1), if n % 3 == 2 { chunked(&[body, 17, body / 2]) } else { ok(body) }))
            .collect(),
        Protocol::Memcached => each
            .map(|(n, &body)| match n % 3 {
                0 => (b"get a b c\r\n".to_vec(), concat([value(body), value(7), b"END\r\n".to_vec()])),
                1 => (
                    [format!("set k 0 0 {body}\r\n").into_bytes(), vec![b'w'; body], b"\r\n".to_vec()].concat(),
                    b"STORED\r\n".to_vec(),
                ),
                _ => (
                    b"mg a v q\r\nmg b v q\r\nmn\r\n".to_vec(),
                    [format!("VA {body} f\r\n").into_bytes(), vec![b'u'; body], b"\r\nMN\r\n".to_vec()].concat(),
                ),
            })
            .collect(),
        Protocol::Redis => each
            .map(|(n, &body)| {
                let asked = concat([b"*2\r\n".to_vec(), bulk(3), bulk(n % 50)]);
                let array =
                    || concat([b"*3\r\n".to_vec(), bulk(body), b"*2\r\n:1\r\n".to_vec(), bulk(5), b"$-1\r\n".to_vec()]);
                (asked, if n % 2 == 0 { bulk(body) } else { array() })
            })
            .collect(),
        _ => unreachable!("not a protocol of one message at a time"),
    }
}

const IN_ORDER: [Protocol; 3] = [Protocol::Http1, Protocol::Memcached, Protocol::Redis];

fn lengths(exchanges: &[(Vec<u8>, Vec<u8>)]) -> Sizes {
    exchanges.iter().map(|(asked, answered)| (asked.len() as u64, answered.len() as u64)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pipelined_messages_are_told_apart_in_whatever_packets_they_come(
        protocol in 0_usize..3, bodies in prop::collection::vec(0_usize..5_000, 2..12), mss in 1_usize..3_000,
    ) {
        let exchanges = exchanges(IN_ORDER[protocol], &bodies);
        let asked = concat(exchanges.iter().map(|e| e.0.clone()));
        let answered = concat(exchanges.iter().map(|e| e.1.clone()));
        let (calls, counts) = read(&[(CLIENT, asked), (SERVER, answered)], mss.max(24), usize::MAX);
        prop_assert_eq!(sizes(&calls), lengths(&exchanges));
        prop_assert_eq!((counts.read, counts.guessed, counts.unread), (bodies.len() as u32, 0, 0));
    }

    #[test]
    fn answers_that_are_written_one_by_one_are_counted_however_little_is_stored(
        protocol in 0_usize..3, bodies in prop::collection::vec(0_usize..5_000, 2..12), mss in 200_usize..3_000, kept in 24_usize..64,
    ) {
        let exchanges = exchanges(IN_ORDER[protocol], &bodies);
        let asked = exchanges.iter().map(|e| (CLIENT, e.0.clone()));
        let answered = exchanges.iter().map(|e| (SERVER, e.1.clone()));
        let (calls, counts) = read(&asked.chain(answered).collect::<Vec<_>>(), mss, kept);
        // Bodies of redis and of memcached may look like heads only if they hold some; these do not.
        prop_assert_eq!((calls.len(), counts.unread), (bodies.len(), 0));
        prop_assert_eq!(sizes(&calls).iter().map(|s| s.1).sum::<u64>(), lengths(&exchanges).iter().map(|s| s.1).sum::<u64>());
        prop_assert_eq!(sizes(&calls), lengths(&exchanges));
    }

    #[test]
    fn calls_on_streams_are_told_apart_whatever_their_order(
        bodies in prop::collection::vec(1_usize..40_000, 2..8), mss in 60_usize..3_000, turned in any::<bool>(),
    ) {
        let mut writes = preface();
        let streams: Vec<u32> = (0..bodies.len() as u32).map(|n| 2 * n + 1).collect();
        writes.push((CLIENT, concat(streams.iter().map(|&s| grpc_request(s)))));
        let mut answers: Vec<(u32, usize)> = streams.iter().copied().zip(bodies.iter().copied()).collect();
        if turned { answers.reverse(); }
        writes.push((SERVER, concat(answers.iter().map(|&(s, body)| grpc_response(s, body)))));
        let (calls, counts) = read(&writes, mss, usize::MAX);
        let expected: Sizes = streams.iter().zip(&bodies).map(|(&s, &body)| (49, grpc_response(s, body).len() as u64)).collect();
        prop_assert_eq!(sizes(&calls), expected);
        prop_assert_eq!((counts.guessed, counts.unread), (0, 0));
    }

    #[test]
    fn calls_of_grpc_are_counted_where_thirty_bytes_of_each_packet_are_stored(
        bodies in prop::collection::vec(1_usize..40_000, 2..8), kept in 21_usize..60,
    ) {
        let mut writes = preface();
        for turn in 0..3_u32 {
            let streams = (0..bodies.len() as u32).map(|n| 2 * (n + turn * bodies.len() as u32) + 1);
            writes.extend(streams.clone().map(|s| (CLIENT, grpc_request(s))));
            writes.extend(streams.zip(&bodies).map(|(s, &body)| (SERVER, grpc_response(s, body))));
            // Pings, and more window, are no requests.
            writes.push((CLIENT, concat([frame(6, 1, 0, 8), frame(8, 0, 0, 4)])));
        }
        let (calls, counts) = read(&writes, 1_448, kept);
        prop_assert_eq!((calls.len(), counts.unread), (3 * bodies.len(), 0));
        for (call, body) in calls.iter().zip(bodies.iter().cycle()) {
            // The frame that opens the window may be among what is not stored.
            prop_assert!([49, 62].contains(&call.request_bytes));
            prop_assert_eq!(call.response_bytes, grpc_response(1, *body).len() as u64);
        }
    }

    #[test]
    fn nothing_that_a_file_holds_makes_a_reader_stumble(
        writes in prop::collection::vec((0_usize..2, prop::collection::vec(any::<u8>(), 1..200)), 1..30),
        protocol in 0_usize..5, mss in 1_usize..300, kept in 0_usize..300,
    ) {
        let begins: [&[u8]; 5] = [b"GET / HTTP/1.1\r\n\r\n", PREFACE, b"get k\r\n", b"*1\r\n$4\r\nPING\r\n", &[22, 3, 1, 0, 1, 1]];
        let all: Vec<Write> = [(CLIENT, begins[protocol].to_vec())].into_iter().chain(writes).collect();
        let total: u64 = all.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let (calls, _) = read(&all, mss, kept);
        prop_assert!(calls.iter().map(|c| c.request_bytes + c.response_bytes).sum::<u64>() <= total);
    }

    #[test]
    fn packets_that_were_lost_and_sent_again_change_no_message(
        bodies in prop::collection::vec(3_000_usize..9_000, 2..6), lost in 0_usize..12,
    ) {
        let exchanges = exchanges(Protocol::Http1, &bodies);
        let asked = concat(exchanges.iter().map(|e| e.0.clone()));
        let answered = concat(exchanges.iter().map(|e| e.1.clone()));
        let mut reader = Reader::default();
        let data = |side, bytes: &'static [u8], from: usize, at| Data {
            side, from: from as u64, to: (from + bytes.len()) as u64, other: 0, stored: bytes, at, pushed: false, acked: 0, turn: 0, has_all: true,
        };
        let (asked, answered): (&'static [u8], &'static [u8]) = (asked.leak(), answered.leak());
        prop_assert!(reader.data(data(CLIENT, asked, 0, 0)).is_none());
        let mut packets: Vec<(usize, &'static [u8])> = answered.chunks(1_448).enumerate().map(|(n, p)| (n * 1_448, p)).collect();
        let late = packets.remove(lost % packets.len());
        packets.push(late);
        for (n, (from, bytes)) in packets.into_iter().enumerate() {
            reader.data(data(SERVER, bytes, from, 1_000 + n as u64));
        }
        let (last, counts) = reader.finish(1);
        prop_assert_eq!((sizes(&last.unwrap().calls), counts.guessed), (lengths(&exchanges), 0));
    }
}

#[test]
fn a_request_answered_alone_needs_no_word_beside_its_turn() {
    let writes: Vec<Write> =
        [1_000, 20, 3_000].into_iter().flat_map(|body| [(CLIENT, get(9)), (SERVER, ok(body))]).collect();
    let (calls, counts) = read(&writes, 1_448, usize::MAX);
    assert_eq!((calls.len(), counts.read, counts.protocol), (0, 3, Some(Protocol::Http1)));
}

#[test]
fn a_head_request_and_an_interim_response_have_no_body() {
    let head = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let nothing = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".to_vec();
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    let writes = [(CLIENT, concat([head.clone(), get(3)])), (SERVER, concat([nothing.clone(), interim, ok(100)]))];
    let (calls, _) = read(&writes, 1_448, usize::MAX);
    let expected = vec![(head.len() as u64, nothing.len() as u64), (get(3).len() as u64, ok(100).len() as u64)];
    assert_eq!(sizes(&calls), expected);
}

#[test]
fn trailers_whose_first_byte_is_in_the_packet_before_begin_no_other_frame() {
    let body = 24 * 1_448 + 24 - (grpc_response(1, 34_712).len() - 34_712);
    let response = grpc_response(1, body);
    assert_eq!(response.len() % 1_448, 24);
    let mut writes = preface();
    for stream in [1, 3, 5] {
        writes.extend([(CLIENT, grpc_request(stream)), (SERVER, grpc_response(stream, body))]);
        writes.push((CLIENT, concat([frame(6, 1, 0, 8), frame(8, 0, 0, 4)])));
    }
    let (calls, _) = read(&writes, 1_448, 21);
    assert_eq!(sizes(&calls).iter().map(|s| s.1).collect::<Vec<_>>(), [response.len() as u64; 3]);
}

#[test]
fn answers_in_one_packet_of_which_one_is_seen_are_shared_out() {
    let mut writes = preface();
    writes.extend([1, 3, 5].map(|s| (CLIENT, grpc_request(s))));
    writes.push((SERVER, concat([1, 3, 5].map(|s| grpc_response(s, 20)))));
    let (calls, counts) = read(&writes, 1_448, 30);
    let bytes: u64 = calls.iter().map(|call| call.response_bytes).sum();
    assert_eq!((calls.len(), bytes, counts.unread), (3, 3 * grpc_response(1, 20).len() as u64, 0));
    assert!(calls.iter().all(|call| call.response_end_ns.is_some()));
}

#[test]
fn a_stream_that_is_not_seen_to_begin_is_known_by_the_numbers_of_its_neighbours() {
    let mut writes = preface();
    let alone = |s| [(CLIENT, grpc_request(s)), (SERVER, grpc_response(s, 9_000))];
    writes.extend(alone(1));
    writes.push((CLIENT, concat([grpc_request(3), grpc_request(5)])));
    writes.push((SERVER, concat([grpc_response(3, 9_000), grpc_response(5, 9_000)])));
    writes.extend(alone(7));
    writes.extend(alone(9));
    let (calls, counts) = read(&writes, 1_448, 30);
    assert_eq!((counts.read, counts.unread), (5, 0));
    let of = |stream| calls.iter().find(|call| call.stream == stream).unwrap();
    assert_eq!(of(3).response_bytes + of(5).response_bytes, 2 * grpc_response(3, 9_000).len() as u64);
    assert_eq!(of(3).request_start_ns, of(5).request_start_ns);
    assert_eq!(of(3).delivered_ns, of(5).delivered_ns, "who has the last of their bytes has both");
}

#[test]
fn a_control_frame_whose_head_is_cut_is_of_no_message() {
    let mut writes = preface();
    writes.push((CLIENT, concat([grpc_request(1), grpc_request(3)])));
    writes.push((SERVER, grpc_response(1, 9_000)));
    // The answer to a ping, and of the head of a window's update seven bytes.
    writes.push((SERVER, concat([frame(6, 1, 0, 8), frame(8, 0, 0, 4)])));
    writes.push((SERVER, grpc_response(3, 9_000)));
    let (calls, _) = read(&writes, 1_448, 24);
    let of = |stream| calls.iter().find(|call| call.stream == stream).unwrap();
    assert_eq!([1, 3].map(|s| of(s).response_bytes), [grpc_response(1, 9_000).len() as u64; 2]);
    let ends = [1, 3].map(|s| of(s).response_end_ns.unwrap());
    // A write of the test is a millisecond after the one before: the second response is the second after the first.
    assert!(ends[1] - ends[0] > 2_000_000);
}

/// An acknowledgement passes 40 us after its packet, and at least 10.
const WAY: Way = Way { echo: 40_000, least: 10_000 };

#[test]
fn an_acknowledgement_of_a_later_ping_does_not_say_when_a_response_had_come() {
    let mut reader = Reader::default();
    let mut places = [0_u64; 2];
    let mut pass = |reader: &mut Reader, side: usize, bytes: Vec<u8>, at: u64| {
        let (from, other) = (places[side], places[1 - side]);
        places[side] += bytes.len() as u64;
        let to = places[side];
        let turn = u32::from(side == SERVER);
        reader.data(Data { side, from, to, other, stored: &bytes, at, pushed: true, acked: from, turn, has_all: true });
        to
    };
    for (side, bytes) in preface() {
        pass(&mut reader, side, bytes, 1_000);
    }
    pass(&mut reader, CLIENT, concat([grpc_request(1), grpc_request(3)]), 2_000);
    let first = pass(&mut reader, SERVER, grpc_response(1, 900), 1_002_000);
    reader.acknowledged(first, Some(1_002_000), 1_052_000, true, None, WAY);
    // The acknowledgement of the second is held back until the server pings, 18 ms later.
    pass(&mut reader, SERVER, grpc_response(3, 900), 2_002_000);
    let ping = pass(&mut reader, SERVER, frame(6, 0, 0, 8), 20_002_000);
    reader.acknowledged(ping, Some(20_002_000), 20_052_000, true, None, WAY);
    let (last, _) = reader.finish(2);
    let delivered: Vec<Option<u64>> = last.unwrap().calls.iter().map(|call| call.delivered_ns).collect();
    assert_eq!(delivered, [Some(1_052_000), Some(2_042_000)]);
}

#[test]
fn a_response_that_came_twice_had_come_with_its_first_copy() {
    let times = |told: bool| {
        let mut reader = Reader::default();
        let mut places = [0_u64; 2];
        let mut pass = |reader: &mut Reader, side: usize, bytes: &[u8], back: u64, at: u64| {
            let (from, other) = (places[side] - back, places[1 - side]);
            let to = from + bytes.len() as u64;
            places[side] = to;
            let turn = u32::from(side == SERVER);
            reader.data(Data { side, from, to, other, stored: bytes, at, pushed: true, acked: 0, turn, has_all: true });
            to
        };
        for (side, bytes) in preface() {
            pass(&mut reader, side, &bytes, 0, 1_000);
        }
        pass(&mut reader, CLIENT, &concat([grpc_request(1), grpc_request(3)]), 0, 2_000);
        let first = pass(&mut reader, SERVER, &grpc_response(1, 900), 0, 1_002_000);
        reader.acknowledged(first, Some(1_002_000), 1_052_000, true, None, WAY);
        let bytes = grpc_response(3, 900);
        let to = pass(&mut reader, SERVER, &bytes, 0, 2_002_000);
        pass(&mut reader, SERVER, &bytes[bytes.len() - 8..], 8, 12_002_000);
        reader.acknowledged(to, Some(2_002_000), 12_052_000, true, told.then_some((to - 8, to)), WAY);
        let calls = reader.finish(2).0.unwrap().calls;
        (calls[1].response_end_ns, calls[1].delivered_ns)
    };
    // The acknowledgement was held back, and says nothing.
    assert_eq!(times(true), (Some(2_002_000), Some(2_042_000)));
    assert_eq!(times(false), (Some(12_002_000), Some(12_052_000)));
}

/// RFC 9113, section 6.4: a client that wants no answer any more resets its stream.
#[test]
fn a_stream_that_is_reset_is_given_up_then_unless_it_had_been_answered() {
    let mut writes = preface();
    for stream in [1, 3, 5] {
        writes.push((CLIENT, grpc_request(stream)));
    }
    writes.push((SERVER, grpc_response(3, 100)));
    writes.push((SERVER, frame(1, 4, 5, 3)));
    let reset = |stream| frame(3, 0, stream, 4);
    writes.push((CLIENT, concat([reset(1), reset(3), reset(5), frame(6, 0, 0, 8)])));
    writes.push((SERVER, frame(6, 1, 0, 8)));
    let (calls, counts) = read(&writes, 1_448, 1_448);
    // The reset is in the packet before the last one, a millisecond and ten microseconds earlier.
    let at = 1_010_000 * (writes.len() as u64 - 1);
    let told: Vec<_> = calls.iter().map(|call| (call.given_up_ns, call.delivered_ns.is_some())).collect();
    assert_eq!((told, counts.unread), (vec![(Some(at), false), (None, true), (Some(at), false)], 0));
}

#[test]
fn a_call_after_a_ping_begins_with_its_own_first_frame() {
    let mut writes = preface();
    writes.extend([(CLIENT, grpc_request(1)), (SERVER, grpc_response(1, 9_000))]);
    // The server pings, the client answers that, and asks later in the same turn.
    writes.push((SERVER, frame(6, 0, 0, 8)));
    writes.push((CLIENT, frame(6, 1, 0, 8)));
    writes.extend([(CLIENT, grpc_request(3)), (SERVER, grpc_response(3, 9_000))]);
    let (calls, counts) = read(&writes, 1_448, usize::MAX);
    assert_eq!((counts.read, counts.unread), (2, 0));
    let call = calls.iter().find(|call| call.stream == 3).unwrap();
    // A write of the test is a millisecond after the one before.
    assert!(call.response_end_ns.unwrap() - call.request_start_ns < 1_500_000);
}

#[test]
fn a_call_after_a_window_that_was_opened_amid_the_answer_before_begins_with_its_own_first_frame() {
    let mut reader = Reader::default();
    let mut places = [0_u64; 2];
    let mut pass = |side: usize, bytes: &[u8], at: u64, turn: u32, has_all: bool| {
        let (from, other) = (places[side], places[1 - side]);
        places[side] += bytes.len() as u64;
        let to = places[side];
        reader.data(Data { side, from, to, other, stored: bytes, at, pushed: true, acked: from, turn, has_all })
    };
    for (side, bytes) in preface() {
        pass(side, &bytes, 1_000, 0, true);
    }
    pass(CLIENT, &grpc_request(1), 2_000, 0, true);
    pass(SERVER, &grpc_response(1, 900), 1_002_000, 0, true);
    // The client has not acknowledged the answer's last bytes as it opens the window.
    pass(CLIENT, &frame(8, 0, 0, 4), 1_003_000, 1, false);
    pass(CLIENT, &grpc_request(3), 40_000_000, 1, true);
    pass(SERVER, &grpc_response(3, 900), 41_000_000, 1, true);
    let next = pass(CLIENT, &grpc_request(5), 50_000_000, 2, true).unwrap();
    assert_eq!((next.turn, next.calls[0].stream, next.calls[0].request_start_ns), (1, 3, 40_000_000));
}

#[test]
fn the_handshake_of_tls_and_its_tickets_are_no_requests() {
    let record =
        |kind: u8, length: usize| [vec![kind, 3, 3, (length >> 8) as u8, length as u8], vec![0xaa; length]].concat();
    let ask = |length| (CLIENT, record(23, length));
    let writes = vec![
        (CLIENT, record(22, 512)),
        (SERVER, concat([record(22, 122), record(20, 1), record(23, 900)])),
        (CLIENT, concat([record(20, 1), record(23, 53)])),
        (SERVER, concat([record(23, 234), record(23, 234)])),
        ask(200),
        (SERVER, concat([record(23, 9_000), record(23, 16_401)])),
        ask(210),
        (SERVER, record(23, 70)),
        (CLIENT, record(21, 19)),
    ];
    for kept in [30, usize::MAX] {
        let (calls, counts) = read(&writes, 1_448, kept);
        // Both requests are turns of their own, and the handshake's two turns are replaced by nothing.
        assert_eq!((calls.len(), counts.read, counts.unread), (0, 2, 0), "{kept}");
    }
}

#[test]
fn a_request_over_tls_while_an_answer_comes_is_said_to_be_unread() {
    let record =
        |kind: u8, length: usize| [vec![kind, 3, 3, (length >> 8) as u8, length as u8], vec![0xaa; length]].concat();
    let mut reader = Reader::default();
    let mut packet = |side, from: u64, bytes: Vec<u8>, has_all| {
        let to = from + bytes.len() as u64;
        reader.data(Data {
            side,
            from,
            to,
            other: 0,
            stored: &bytes,
            at: from,
            pushed: true,
            acked: 0,
            turn: 0,
            has_all,
        });
        to
    };
    let asked = packet(CLIENT, 0, record(23, 100), true);
    packet(SERVER, 0, record(23, 1_000), true);
    packet(CLIENT, asked, record(23, 100), false);
    assert_eq!(reader.finish(1).1.unread, 1);
}

#[test]
fn requests_of_which_only_the_first_is_stored_are_counted_by_their_answers() {
    let asked = concat([get(5), get(5), get(5)]);
    let writes = [(CLIENT, asked.clone()), (SERVER, ok(3_000)), (SERVER, ok(20)), (SERVER, ok(9_000))];
    let (calls, counts) = read(&writes, 1_448, 30);
    assert_eq!((calls.len(), counts.unread), (3, 0));
    assert_eq!(calls.iter().map(|call| call.request_bytes).sum::<u64>(), asked.len() as u64);
    assert_eq!(
        calls.iter().map(|call| call.response_bytes).collect::<Vec<_>>(),
        [3_000, 20, 9_000].map(|n| ok(n).len() as u64)
    );
}

/// RFC 5246 section 6.2.3: 2^14 bytes, and 2048 that encryption adds.
#[test]
fn a_tls_record_has_at_most_18432_bytes() {
    let record = |bytes: u16| super::tls::begins(&[&[23, 3, 3][..], &bytes.to_be_bytes()].concat());
    assert_eq!((record(18_432), record(18_433), record(0)), (true, false, false));
}

#[test]
fn a_frame_of_more_than_a_mebibyte_is_no_http2() {
    let frame = |bytes: u32| super::http2::begins(&[&bytes.to_be_bytes()[1..], &[0, 0, 0, 0, 0, 1]].concat());
    assert_eq!((frame(1 << 20), frame((1 << 20) + 1)), (Some(1), None));
}

/// A line of so many bytes that has not ended: more is needed, or it is none.
#[test]
fn a_line_of_redis_has_64_kib_and_one_of_memcached_256() {
    use super::Head;
    let redis =
        |bytes: usize| super::resp::Resp::default().head(SERVER, &[b"+", &vec![b'a'; bytes - 1][..]].concat(), None);
    assert_eq!((redis(1 << 16), redis((1 << 16) + 1)), (Head::More, Head::Bad));
    let memcached =
        |bytes: usize| super::memcached::head(CLIENT, &[b"get ", &vec![b'a'; bytes - 4][..]].concat(), None);
    assert_eq!((memcached(1 << 18), memcached((1 << 18) + 1)), (Head::More, Head::Bad));
}

#[test]
fn arrays_of_redis_are_32_deep_at_most() {
    use super::Head;
    let mut resp = super::resp::Resp::default();
    let heads: Vec<Head> = (0..33).map(|_| resp.head(CLIENT, b"*1\r\n", None)).collect();
    assert!(heads[..32].iter().all(|head| *head != Head::Bad));
    assert_eq!(heads[32], Head::Bad);
}

/// A command of Redis.
fn command(words: &[&str]) -> Vec<u8> {
    let strings = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), strings.collect::<String>()).into_bytes()
}

/// <https://redis.io/docs/latest/develop/using-commands/transactions/>: MULTI is answered OK, each command QUEUED, and EXEC with the results.
#[test]
fn a_transaction_of_redis_in_one_write_is_one_request_however_little_is_stored() {
    let commands = [&["multi"][..], &["GET", "a"], &["SET", "b", "1"], &["EXEC"]].map(command);
    let asked = concat(commands.clone());
    let queued = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n".to_vec();
    let answered = concat([queued, b"*2\r\n".to_vec(), bulk(4_000), b"+OK\r\n".to_vec()]);
    let get = || [(CLIENT, command(&["GET", "c"])), (SERVER, bulk(70))];
    let known = |writes: &[Write], kept: usize| {
        let counts = read(writes, 1448, kept).1;
        (counts.read, counts.unread)
    };
    let transaction = || [(CLIENT, asked.clone()), (SERVER, answered.clone())];
    let writes = [transaction(), transaction(), get()].concat();
    assert_eq!([40, usize::MAX].map(|kept| known(&writes, kept)), [(3, 0); 2]);
    // Two in one write, and one that is called off.
    let (calls, _) = read(&[(CLIENT, asked.repeat(2)), (SERVER, answered.repeat(2))], 1448, usize::MAX);
    assert_eq!(sizes(&calls), [(asked.len() as u64, answered.len() as u64); 2]);
    let called_off = concat([&["MULTI"][..], &["GET", "a"], &["DISCARD"]].map(command));
    let called_off = [(CLIENT, called_off), (SERVER, b"+OK\r\n+QUEUED\r\n+OK\r\n".to_vec())];
    assert_eq!(known(&[called_off, get()].concat(), usize::MAX), (2, 0));
    // Who waits for each answer makes a request of each command.
    let answers = [&b"+OK\r\n"[..], b"+QUEUED\r\n", b"+QUEUED\r\n", b"*2\r\n$-1\r\n+OK\r\n"].map(<[u8]>::to_vec);
    let by_turns: Vec<Write> =
        commands.into_iter().zip(answers).flat_map(|(c, s)| [(CLIENT, c), (SERVER, s)]).collect();
    assert_eq!(known(&by_turns, usize::MAX), (4, 0));
}

/// Sixteen packets of the client, of which one is a request.
#[test]
fn a_protocol_is_looked_for_in_the_first_eight_packets_of_the_client() {
    let found = |request: usize| {
        let junk = |n: usize| {
            if n == request { (CLIENT, get(20)) } else { (CLIENT, b"\x07\x07\x07\x07\x07\x07\x07\x07".to_vec()) }
        };
        let writes: Vec<Write> = (1..=request).map(junk).chain([(SERVER, ok(100))]).collect();
        read(&writes, 1448, 1448).1.protocol
    };
    assert_eq!((found(8), found(9)), (Some(Protocol::Http1), None));
}

/// Two requests, of which what answers the first is no message, so many times, and one more.
/// On a stream that both sides keep open: a message of the client and one of the server, whose second frame begins within a packet.
fn on_an_open_stream(messages: usize, kept: usize) -> (u32, u32) {
    let mut writes: Vec<Write> = Vec::new();
    for n in 0..messages {
        let head = if n == 0 { frame(1, 4, 1, 30) } else { Vec::new() };
        writes.push((CLIENT, concat([head.clone(), frame(0, 0, 1, 60)])));
        writes.push((SERVER, concat([head, frame(0, 0, 1, 16_384), frame(0, 0, 1, 2_000)])));
    }
    let (_, counts) = read(&writes, 1_448, kept);
    (counts.read, counts.unread)
}

#[test]
fn messages_of_a_stream_that_stays_open_are_read_where_packets_are_cut() {
    assert_eq!(on_an_open_stream(20, 1_448), (20, 0));
    assert_eq!(on_an_open_stream(20, 62), (20, 0));
}

/// A frame with one message of gRPC of so many bytes, whose prefix says `short` fewer.
fn message_of_grpc(stream: u32, bytes: usize, short: u32) -> Vec<u8> {
    let mut all = frame(0, 0, stream, 5 + bytes);
    all[9] = 0;
    all[10..14].copy_from_slice(&(bytes as u32 - short).to_be_bytes());
    all
}

#[test]
fn streams_that_were_opened_before_the_capture_are_known_by_the_messages_of_grpc_on_them() {
    let read = |kept: usize, short: u32| {
        let turn = [(CLIENT, message_of_grpc(7, 78, short)), (SERVER, message_of_grpc(7, 9_000, 0))];
        let behind = [(SERVER, vec![0x79; 700])]; // What is left of an answer to something earlier.
        let pings = [(CLIENT, frame(6, 0, 0, 8)), (SERVER, frame(6, 1, 0, 8))];
        let writes: Vec<Write> = behind.into_iter().chain([&turn[..], &pings, &turn, &turn].concat()).collect();
        let (calls, counts) = read(&writes, 1_448, kept);
        (sizes(&calls), counts.protocol, counts.unread)
    };
    let sizes = vec![(92, 9_014); 3];
    assert_eq!(read(1_448, 0), (sizes.clone(), Some(Protocol::Http2), 0));
    assert_eq!(read(30, 0), (sizes, Some(Protocol::Http2), 0));
    assert_eq!(read(1_448, 1).1, None, "the length is another: it may be anything");
}

#[test]
fn requests_behind_pings_and_windows_are_known_where_a_capture_begins_in_the_middle() {
    let window = frame(8, 0, 0, 4);
    let asked = [window.clone(), frame(6, 0, 0, 8), window, frame(1, 4, 7, 30)].concat();
    let turn = [(CLIENT, asked), (CLIENT, message_of_grpc(7, 20, 0)), (SERVER, message_of_grpc(7, 9_000, 0))];
    let pings = [(CLIENT, frame(6, 0, 0, 8)), (SERVER, frame(6, 1, 0, 8))];
    let writes: Vec<Write> = [&turn[..], &pings].concat();
    let (_, counts) = read(&writes, 1_448, 1_448);
    assert_eq!((counts.protocol, counts.unread), (Some(Protocol::Http2), 0));
    let (_, counts) = read(&writes[3..], 1_448, 1_448);
    assert_eq!(counts.protocol, None, "a ping alone may be anything");
}

#[test]
fn three_places_that_are_no_message_show_another_protocol() {
    let read = |times: usize| {
        let junk = b"\x07\x07\x07\x07\x07\x07\x07\x07".to_vec();
        let two = [(CLIENT, concat([get(9), get(9)])), (SERVER, junk), (SERVER, ok(20))];
        let one = [(CLIENT, get(9)), (SERVER, ok(100))];
        let writes: Vec<Write> = std::iter::repeat_n(two, times).flatten().chain(one).collect();
        let (_, counts) = read(&writes, 1_448, usize::MAX);
        (counts.read, counts.unread)
    };
    assert_eq!((read(2), read(3)), ((5, 0), (4, 1)));
}

/// 21 bytes of the line, five of data, and the CR LF behind these.
#[test]
fn what_memcached_is_told_not_to_answer_ends_no_question() {
    let ends = |line: &str| match super::memcached::head(CLIENT, line.as_bytes(), None) {
        super::Head::Unit { bytes, part } => (bytes, part.ends),
        other => panic!("{other:?}"),
    };
    assert_eq!(ends("set k 0 0 5 noreply\r\n"), (28, false));
    assert_eq!(ends("set k 0 0 5\r\n"), (20, true));
}

/// A packet of 32 bytes with number 1, these capabilities, the longest packet and the character set, and zeros.
#[test]
fn a_client_of_mysql_opens_with_protocol_4_1() {
    let opens = |capabilities: u32| {
        let mut bytes = vec![32, 0, 0, 1];
        bytes.extend(capabilities.to_le_bytes());
        bytes.extend([0, 0, 0, 1, 33]);
        bytes.resize(36, 0);
        super::mysql::opens(&bytes)
    };
    assert_eq!([0x200, 0xa00, 0x800, 0].map(opens), [true, true, false, false]);
}
