//! What comes out: flat rows, times in whole nanoseconds since the first packet of the capture.

use crate::{Connections, Fitness, Late, Link, Partial, Warning};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Everything found in one capture.
///
/// Rows refer to each other by number: `connection` is an index into `connections`, `turn` is a [`Turn::turn`] of the same
/// connection. `turns`, `trains` and `bursts` are sorted by start, then connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Counts over the whole file.
    pub summary: Summary,
    /// One row per TCP connection, in order of first packet, as tshark's `tcp.stream`.
    pub connections: Connections,
    /// One row per request/response exchange.
    pub turns: Vec<Turn>,
    /// One row per packet train.
    pub trains: Vec<Train>,
    /// Where a request or a response was written by its application in several pieces, one row per piece.
    pub bursts: Vec<Burst>,
    /// Ends of writes in requests that were in flight together, by connection.
    pub writes: Vec<Write>,
    /// What was read of the applications' messages where turns do not say it, by connection.
    pub stretches: Vec<Stretch>,
    /// Hosts, the likeliest aggregator first.
    pub hosts: Vec<Host>,
    /// What the spacing of packets says about the link to each receiver.
    pub links: Vec<Link>,
    /// Whether the capture is fit to judge by.
    pub fitness: Fitness,
    /// What a reader of the numbers should know.
    pub warnings: Vec<Warning>,
    /// Set when the file is damaged and only its front could be read.
    pub partial: Option<Partial>,
}

/// Counts over a whole capture. Packets, connections and payload are what tshark counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// File name as given.
    pub file: String,
    /// `pcap` or `pcapng`, with ` (gzip)` where compressed.
    pub format: String,
    /// Packets in the file (the readable part of it).
    pub packets: u64,
    /// Packets that carry TCP, every copy of a mirrored packet included.
    pub tcp_packets: u64,
    /// TCP connections.
    pub connections: u64,
    /// TCP payload on the wire: retransmissions and every copy of a mirrored packet included, from the IP headers, whatever the snaplen.
    pub payload_bytes: u64,
    /// Wall-clock time of the first packet, nanoseconds since 1970-01-01 UTC. All other times count from here.
    pub start_epoch_ns: i64,
    /// From the first to the last packet.
    pub duration_ns: u64,
}

/// Which way, by role. The client is who sent the SYN; without a handshake, who has the higher port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: responses.
    ToClient,
}

impl Direction {
    /// The name used in tables and files: `to_server` or `to_client`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::ToServer => "to_server",
            Direction::ToClient => "to_client",
        }
    }
}

/// One TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its number, from zero.
    pub connection: u32,
    /// Who opened it (see [`Direction`]).
    pub client_ip: IpAddr,
    /// The client's port.
    pub client_port: u16,
    /// The other side.
    pub server_ip: IpAddr,
    /// The server's port.
    pub server_port: u16,
    /// First packet.
    pub start_ns: u64,
    /// Last packet.
    pub end_ns: u64,
    /// SYN and SYN/ACK are both in the file.
    pub handshake_seen: bool,
    /// SYN to the ACK of the SYN/ACK as the tap saw it: a whole unloaded round trip. None if a part is missing or was sent twice.
    pub handshake_rtt_ns: Option<u64>,
    /// SYN to SYN/ACK: the part of the round trip between the tap and the server.
    pub handshake_server_ns: Option<u64>,
    /// SYN/ACK to ACK: the part between the tap and the client.
    pub handshake_client_ns: Option<u64>,
    /// Request/response exchanges.
    pub turns: u32,
    /// How often PSH showed messages.
    pub writes: WriteCounts,
    /// How well its messages could be read.
    pub messages: ReadCounts,
    /// The connection whose packets these are under other addresses (NAT): half of its data packets at least.
    pub copy_of: Option<u32>,
    /// What the client sent.
    pub to_server: DirectionStats,
    /// What the server sent.
    pub to_client: DirectionStats,
}

/// One direction of a connection. Copies made by a mirror port count once; `payload_bytes = unique_bytes + retransmitted_bytes +
/// keepalive_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStats {
    /// Packets, bare ACKs included, mirrored copies left out.
    pub packets: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Payload on the wire.
    pub payload_bytes: u64,
    /// Payload seen for the first time.
    pub unique_bytes: u64,
    /// Payload seen before at this tap.
    pub retransmitted_bytes: u64,
    /// Packets with at least one byte seen before at this tap; what an offload merged counts as the packets that it was on the wire.
    pub retransmitted_packets: u64,
    /// Packets sent again though their receiver had the bytes: it had acknowledged them, or says that they came twice (D-SACK, RFC 2883). What
    /// they repeat was late, not lost.
    pub spurious_packets: u64,
    /// Of these, what passed the tap again when its acknowledgement had passed, by longer than data takes to be acknowledged: it was held up before the
    /// tap, since its sender did not know yet.
    pub held_up_packets: u64,
    /// Of the spurious, what repeats a run from the first byte on that the network had delivered behind later ones: its sender took the change of order for a
    /// loss (RACK, RFC 8985).
    pub overtaken_packets: u64,
    /// Packets that filled a hole and were sent after the packet behind the hole: sent again because the first copy was lost before this tap.
    /// What an offload merged counts as the packets that it was on the wire.
    pub refilled_packets: u64,
    /// Packets that filled a hole because the network (or the tap) changed the order.
    pub out_of_order_packets: u64,
    /// Payload that the receiver acknowledged, or that later data skipped, and that is not in the file.
    pub missing_bytes: u64,
    /// Second copies of a packet, as a mirror port makes them.
    pub mirrored_packets: u64,
    /// Payload in those copies.
    pub mirrored_bytes: u64,
    /// Keep-alive probes.
    pub keepalive_packets: u64,
    /// Payload in keep-alive probes (old bytes, one per probe).
    pub keepalive_bytes: u64,
    /// Bare ACKs that repeat the last one while data is outstanding.
    pub duplicate_acks: u64,
    /// Packets marked CE in the IP header.
    pub ce_packets: u64,
    /// Packets with the ECE flag set, SYN and SYN/ACK left out.
    pub ece_packets: u64,
    /// SYN packets.
    pub syn: u32,
    /// FIN packets.
    pub fin: u32,
    /// RST packets.
    pub rst: u32,
    /// Its first FIN or RST since it last acknowledged data.
    pub closed_ns: Option<u64>,
    /// Largest payload of one packet.
    pub largest_segment: u32,
    /// Maximum segment size announced in the SYN.
    pub mss_option: Option<u16>,
    /// Window shift announced in the SYN.
    pub window_scale: Option<u8>,
    /// The SYN permitted SACK.
    pub sack_option: bool,
    /// The SYN offered time stamps.
    pub timestamps_option: bool,
    /// The SYN was sent as ECN-capable (ECT), which RFC 3168 forbids and DCTCP's hosts do (Linux, `tcp_ecn_send_syn`).
    pub ect_syn: bool,
    /// First packet.
    pub first_ns: Option<u64>,
    /// Last packet.
    pub last_ns: Option<u64>,
    /// Round-trip samples taken for this direction's data.
    pub rtt_samples: u64,
    /// Shortest round trip: data to its acknowledgement, plus the least seen on the sender's side of the tap.
    pub min_rtt_ns: Option<u64>,
    /// Longest round trip that no delayed-ACK timer made: its excess over the shortest was spent in queues behind the tap.
    pub max_rtt_ns: Option<u64>,
    /// Smoothed round trip (weight 0.25) after the last sample.
    pub smoothed_rtt_ns: Option<u64>,
    /// New data after a pause of 30 us to 2 ms, with data outstanding, where acknowledgements are further apart than 100 us.
    pub releases: u64,
    /// Of these, what came when an acknowledgement had just reached the sender: a full window waits for one.
    pub prompted_releases: u64,
    /// Of these, what no acknowledgement since the packet before can have caused: a sender that paces has them.
    pub unprompted_releases: u64,
    /// Repairs with 16 segments or more in flight, after which the sender went on at its window.
    pub backoffs: u64,
    /// Of these, with more than 0.55 of the data in flight left at the end of the repair: Reno leaves half.
    pub backoffs_over_half: u64,
    /// Of these, with more than 0.8 left: CUBIC leaves 0.7.
    pub backoffs_small: u64,
}

/// A request and its response: a run of payload from the client, answered by a run of payload from the server.
///
/// Times are when the tap saw the packets. A response ends with the last packet that carried any of its bytes, retransmissions included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Index into [`Analysis::connections`].
    pub connection: u32,
    /// Number of the turn in its connection, from zero.
    pub turn: u32,
    /// First request byte; none when the server spoke unasked or the request is not in the file.
    pub request_start_ns: Option<u64>,
    /// Last request byte.
    pub request_end_ns: Option<u64>,
    /// Payload of the request, each byte once, missing ones included.
    pub request_bytes: u64,
    /// First response byte; none when no response is in the file.
    pub response_start_ns: Option<u64>,
    /// Last response byte.
    pub response_end_ns: Option<u64>,
    /// When the client's acknowledgement of all of it passed, if it passed before the next request.
    pub response_acked_ns: Option<u64>,
    /// Payload of the response, each byte once, missing ones included.
    pub response_bytes: u64,
    /// How many of these bytes are known only from acknowledgements.
    pub missing_bytes: u64,
    /// Retransmitted payload within the response.
    pub retransmitted_bytes: u64,
    /// How long the client's application waited after it had the previous response; none in the first turn.
    pub think_ns: Option<u64>,
    /// How long the server's application took to begin its answer.
    pub service_ns: Option<u64>,
    /// In how many pieces the client wrote the request (see [`Burst`]).
    pub request_pieces: u32,
    /// In how many pieces the server wrote the response.
    pub response_pieces: u32,
    /// The request was sent before the client had all of the previous response (pipelining, or both sides talking at once).
    pub overlapped: bool,
    /// When the server had all of the request, as the tap can tell: its acknowledgement, or half a round trip after the last byte.
    pub request_delivered_ns: Option<u64>,
    /// When the client had all of the response, likewise.
    pub response_delivered_ns: Option<u64>,
    /// By how much earlier the server may have had all of the request: nothing said so, and half a round trip is more than the shortest way.
    pub request_unsure_ns: u64,
    /// By how much earlier the client may have had all of the response, likewise.
    pub response_unsure_ns: u64,
    /// What may have held the first byte of the request back besides the client.
    pub request_front: Front,
    /// What may have held the first byte of the response back besides the server.
    pub response_front: Front,
}

/// What may have delayed the first byte of a run on its way, so that its application gets no blame for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Front {
    /// Packets before it were lost on their way to the tap: what the tap saw first was sent again.
    pub lost: bool,
    /// It was in the queue in front of its receiver for so long at least, as what came behind it shows.
    pub queued_ns: u64,
    /// It was there for at most so much longer: data had come without a break, and a queue keeps the order.
    pub busy_ns: u64,
    /// It came so much later than an empty packet on empty links, which the round trip is known from: links take longer for its size. Of an answer, with what held its request in the same way: on a tap at the
    /// host that asks, all requests of a round leave at once, and its link sends them one after another.
    pub drag_ns: u64,
    /// What the application wrote first, if a packet ended with that and more followed at once: a header, before its body. Otherwise 0.
    pub written_bytes: u32,
    /// How long after that it wrote what followed, by the next packet without the time that this takes on the link; none where that was not next.
    pub went_on_ns: Option<u32>,
    /// How much later than its sender's time stamps its packets passed.
    #[serde(skip)]
    pub late: Option<Late>,
}

/// A piece of a request or response that its application wrote after a pause of its own.
///
/// Only runs with two or more pieces have rows. A pause counts as the application's when everything sent before it was acknowledged (or
/// one segment at most was not), nothing was being repaired, and the peer's window was open: then nothing but the application held the data back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Burst {
    /// Index into [`Analysis::connections`].
    pub connection: u32,
    /// Who wrote it.
    pub direction: Direction,
    /// The turn it belongs to.
    pub turn: u32,
    /// Number of the piece in its run, from zero.
    pub piece: u32,
    /// First byte.
    pub start_ns: u64,
    /// Last byte.
    pub end_ns: u64,
    /// Payload, each byte once.
    pub bytes: u64,
    /// From the moment everything before was delivered (or, unacknowledged, sent) to the first byte of this piece; zero for piece 0.
    pub pause_ns: u64,
}

/// A packet train (Jain and Routhier 1986): consecutive data packets of one direction without a gap above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Train {
    /// Index into [`Analysis::connections`].
    pub connection: u32,
    /// Which way it went.
    pub direction: Direction,
    /// First packet.
    pub start_ns: u64,
    /// Last packet.
    pub end_ns: u64,
    /// Packets with payload, retransmissions included.
    pub packets: u64,
    /// Payload, each byte once: what the application sent.
    pub bytes: u64,
    /// Payload seen before at this tap; not part of `bytes`.
    pub retransmitted_bytes: u64,
    /// Idle time before the train; none for the first of its direction.
    pub gap_before_ns: Option<u64>,
    /// The threshold in force when the train began.
    pub threshold_ns: u64,
    /// The turn in which the train began.
    pub turn: u32,
    /// Over how many turns it extends: more than one when think times are below the threshold.
    pub turns: u32,
}

/// One host, as sender and receiver of payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its address.
    pub ip: IpAddr,
    /// Payload it received, each byte once.
    pub received_bytes: u64,
    /// Payload it sent, each byte once.
    pub sent_bytes: u64,
    /// Hosts that sent it payload.
    pub senders: u32,
    /// Connections it took part in.
    pub connections: u32,
}

/// Where an application's write ended, by PSH, in requests of a connection that were in flight together: only where each has one end, and its
/// answer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Write {
    /// Index into [`Analysis::connections`].
    pub connection: u32,
    /// Who wrote it.
    pub direction: Direction,
    /// The turn in which the first of these requests began.
    pub turn: u32,
    /// How many turns these requests and their answers look like.
    pub turns: u32,
    /// Place of its end in the bytes of this direction, from anywhere.
    pub to: u64,
    /// When the first write of the request passed; of an answer, that of its request.
    pub start_ns: u64,
    /// When its last segment passed.
    pub at_ns: u64,
}

/// How often PSH showed messages on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteCounts {
    /// Requests that show it: answered alone, with one end each way, or many in flight together and as many ends of answers.
    pub shown: u32,
    /// Times that requests in flight together had as many ends as their answers.
    pub apart: u32,
    /// Times that the ends were no messages,
    pub odd: u32,
    /// and more than one of them was a request's.
    pub several: u32,
    /// Ends, on short segments, of what one side wrote before the other had said anything.
    pub unasked: u32,
}

/// A protocol that fanin reads messages of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2 in clear text (RFC 9113), gRPC included.
    Http2,
    /// memcached's text or binary protocol.
    Memcached,
    /// Redis' protocol (RESP).
    Redis,
    /// TLS: its records, not what they hold.
    Tls,
    /// PostgreSQL's protocol, version 3.
    Postgres,
    /// MySQL's protocol.
    MySql,
    /// Kafka's protocol.
    Kafka,
    /// MongoDB's protocol.
    MongoDb,
    /// Thrift in frames, strict binary protocol.
    Thrift,
    /// WebSocket (RFC 6455), in clear text.
    WebSocket,
    /// One that is not known, whose frames begin with their lengths.
    Prefixed,
}

impl Protocol {
    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "HTTP/1",
            Protocol::Http2 => "HTTP/2",
            Protocol::Memcached => "memcached",
            Protocol::Redis => "Redis",
            Protocol::Tls => "TLS",
            Protocol::Postgres => "PostgreSQL",
            Protocol::MySql => "MySQL",
            Protocol::Kafka => "Kafka",
            Protocol::MongoDb => "MongoDB",
            Protocol::Thrift => "Thrift",
            Protocol::WebSocket => "WebSocket",
            Protocol::Prefixed => "frames with their lengths",
        }
    }
}

/// A request and the response to it, read by their protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Its stream, of several at once (HTTP/2); else zero.
    pub stream: u32,
    /// First request byte at the tap.
    pub request_start_ns: u64,
    /// Last request byte.
    pub request_end_ns: u64,
    /// Payload of the request.
    pub request_bytes: u64,
    /// First response byte; none when nothing answered within the capture.
    pub response_start_ns: Option<u64>,
    /// Last response byte, all before it included.
    pub response_end_ns: Option<u64>,
    /// Payload of the response.
    pub response_bytes: u64,
    /// When the client had all of the response, as the tap can tell.
    pub delivered_ns: Option<u64>,
    /// By how much earlier that may have been.
    pub unsure_ns: u64,
    /// When its stream was reset before the response was whole.
    pub given_up_ns: Option<u64>,
    /// How long the server took to begin its answer; none where it may have waited behind another one.
    pub service_ns: Option<u64>,
}

/// What a connection carried from one moment at which it was idle to the next, where its turns do not say it: requests in flight together, and
/// what is no request. Its calls stand in place of `turns` turns from `turn` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// Index into [`Analysis::connections`].
    pub connection: u32,
    /// The turn in which it began.
    pub turn: u32,
    /// How many turns it looks like.
    pub turns: u32,
    /// In order of their requests; none where the protocol had something to say, and its applications nothing.
    pub calls: Vec<Call>,
}

/// How well the messages of a connection could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCounts {
    /// What it speaks, if that is known.
    pub protocol: Option<Protocol>,
    /// Requests that were read, with their responses.
    pub read: u32,
    /// Of these, requests or responses whose end or beginning was not stored, and follows from what comes behind them.
    pub guessed: u32,
    /// Requests whose messages did not fit together; turns stand for them.
    pub unread: u32,
    /// Packets with several requests, or with a protocol that turns do not tell, whose rest is not stored: it may hold more requests.
    pub hidden: u32,
    /// Payload in which messages may begin or end and that is not stored.
    pub unseen_bytes: u64,
}

/// Where rows go as soon as they are known, for callers who do not want to keep them all.
pub trait Sink {
    /// A turn ended.
    fn turn(&mut self, turn: Turn);
    /// A train ended.
    fn train(&mut self, train: Train);
    /// A piece of a run with several pieces ended.
    fn burst(&mut self, burst: Burst);
    /// Requests in flight together are told apart by the ends of writes: one end.
    fn write(&mut self, _write: Write) {}
    /// Requests in flight together were read by their protocol.
    fn stretch(&mut self, _stretch: Stretch) {}
}
