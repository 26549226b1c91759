//! What the applications said, where it can be read: which bytes are one message, and which request a response answers.
//!
//! Protocols tell it best: those that are known, the records of TLS, and lengths before frames of any other. Captures are mostly cut: of each packet some tens of
//! bytes of payload are stored, so that a head at the front of a packet is read, its length says where the message ends by counting sequence
//! numbers, and what begins in the rest is not seen. After that a message is recognised again where a packet begins with one ([`lane`]); what
//! was not seen is counted, and given to the message before it or to requests that nothing else answers ([`calls`]).
//!
//! Where the messages of a stretch of a connection do not fit together, nothing is said about it, and turns and ends of writes are used as
//! for protocols that are not known.

mod calls;
mod frames;
mod http1;
mod http2;
mod in_flight;
mod lane;
mod memcached;
mod mysql;
mod postgres;
mod prefixed;
mod resp;
mod streams;
#[cfg(test)]
mod tests;
mod tls;
mod websocket;

use crate::way::Way;
use crate::{Protocol, ReadCounts, Stretch};
use calls::Calls;
use lane::{Lane, Packet};
use serde::{Deserialize, Serialize};

/// Directions by role.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// A connection that has shown no protocol in so many packets of its client speaks none that is known.
const TRIES: u8 = 8;
/// Where packets are stored whole, so many places that are no message show that it is another protocol.
const MISREAD: u32 = 3;

/// What stands at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// More bytes are needed to say.
    More,
    /// Nothing of this protocol.
    Bad,
    /// So many bytes, head and body.
    Unit { bytes: u64, part: Part },
    /// All that follows, to the end of the connection.
    Rest(Part),
}

/// What some bytes are to the messages of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    /// They belong to a message; else they are the protocol's own.
    message: bool,
    /// Which of several messages at once; zero where a direction has one at a time.
    stream: u32,
    /// The message ends with them,
    ends: bool,
    /// or is given up.
    aborts: bool,
    /// What a request says of its response, in the protocol's own code.
    note: u8,
}

impl Part {
    const CONTROL: Part = Part { message: false, stream: 0, ends: false, aborts: false, note: 0 };

    const fn message(stream: u32) -> Part {
        Part { message: true, stream, ..Part::CONTROL }
    }
}

#[derive(Serialize, Deserialize)]
enum Grammar {
    Http1(http1::Http1),
    Http2(http2::Http2),
    Memcached,
    MemcachedBinary,
    Resp(resp::Resp),
    Tls(tls::Tls),
    Postgres(postgres::Postgres),
    MySql(mysql::MySql),
    Frames(frames::Frames),
    WebSocket,
    Prefixed(prefixed::Prefixed),
}

impl Grammar {
    /// By the first bytes of what a client's packet carries, `payload` bytes in all.
    fn of(bytes: &[u8], payload: usize) -> Option<Grammar> {
        if bytes.len() >= 8 && http1::begins(CLIENT, bytes) {
            Some(Grammar::Http1(Default::default()))
        } else if http2::is_client(bytes) {
            Some(Grammar::Http2(Default::default()))
        } else if bytes.len() >= 6 && tls::begins(bytes) {
            Some(Grammar::Tls(Default::default()))
        } else if memcached::is_client(bytes) {
            Some(Grammar::Memcached)
        } else if memcached::is_binary_client(bytes) {
            Some(Grammar::MemcachedBinary)
        } else if resp::is_client(bytes) {
            Some(Grammar::Resp(Default::default()))
        } else if postgres::is_client(bytes, payload) {
            Some(Grammar::Postgres(Default::default()))
        } else if mysql::is_client(bytes, payload) {
            Some(Grammar::MySql(Default::default()))
        } else if let Some(kind) = frames::is_client(bytes, payload) {
            Some(Grammar::Frames(frames::Frames::new(kind)))
        } else {
            prefixed::is_client(bytes, payload).map(|form| Grammar::Prefixed(prefixed::Prefixed::new(form)))
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Grammar::Http1(_) => Protocol::Http1,
            Grammar::Http2(_) => Protocol::Http2,
            Grammar::Memcached | Grammar::MemcachedBinary => Protocol::Memcached,
            Grammar::Resp(_) => Protocol::Redis,
            Grammar::Tls(_) => Protocol::Tls,
            Grammar::WebSocket => Protocol::WebSocket,
            Grammar::Postgres(_) => Protocol::Postgres,
            Grammar::MySql(_) => Protocol::MySql,
            Grammar::Frames(frames) => match frames.kind {
                frames::Kind::Kafka => Protocol::Kafka,
                frames::Kind::MongoDb => Protocol::MongoDb,
                frames::Kind::Thrift => Protocol::Thrift,
            },
            Grammar::Prefixed(_) => Protocol::Prefixed,
        }
    }

    /// The client goes on in another protocol: TLS, or what a tunnel holds.
    fn is_over(&self) -> bool {
        match self {
            Grammar::Http1(http1) => http1.over,
            Grammar::Postgres(postgres) => postgres.encrypted,
            Grammar::MySql(mysql) => mysql.encrypted,
            _ => false,
        }
    }

    /// `asked`: what the request says that the next response of `side` answers.
    fn head(&mut self, side: usize, bytes: &[u8], asked: Option<u8>) -> Head {
        match self {
            Grammar::Http1(http1) => http1.head(side, bytes, asked),
            Grammar::Http2(http2) => http2.head(side, bytes),
            Grammar::Memcached => memcached::head(side, bytes, asked),
            Grammar::MemcachedBinary => memcached::binary_head(side, bytes),
            Grammar::Resp(resp) => resp.head(side, bytes, asked),
            Grammar::Tls(tls) => tls.head(side, bytes),
            Grammar::WebSocket => websocket::head(side, bytes),
            Grammar::Postgres(postgres) => postgres.head(side, bytes, asked),
            Grammar::MySql(mysql) => mysql.head(side, bytes),
            Grammar::Frames(frames) => frames.head(side, bytes),
            Grammar::Prefixed(prefixed) => prefixed.head(bytes),
        }
    }

    /// What these bytes, behind some that were not seen, may begin: a message for certain, one if a write ended before them, or none.
    fn begins(&self, side: usize, bytes: &[u8]) -> Begins {
        let found = match self {
            Grammar::Http1(_) => return Begins::surely(bytes.len() >= 4 && http1::begins(side, bytes), 0),
            Grammar::Tls(_) => return Begins::surely(tls::begins(bytes), 0),
            Grammar::Http2(_) => {
                let stream = http2::begins(bytes);
                return Begins::surely(stream.is_some(), stream.unwrap_or(0));
            }
            Grammar::Memcached => bytes.len() >= 3 && memcached::begins(side, bytes),
            Grammar::MemcachedBinary => {
                matches!(memcached::binary_head(side, bytes), Head::Unit { bytes: ..0x100_0000, .. })
            }
            Grammar::Resp(_) => resp::begins(side, bytes),
            Grammar::WebSocket => matches!(websocket::head(side, bytes), Head::Unit { .. }),
            Grammar::Postgres(_) => postgres::begins(side, bytes),
            Grammar::MySql(_) => mysql::begins(side, bytes),
            Grammar::Prefixed(prefixed) => matches!(prefixed.head(bytes), Head::Unit { bytes: ..0x100_0000, .. }),
            Grammar::Frames(frames) => return Begins::surely(frames.begins(side, bytes), 0),
        };
        if found { Begins::BehindAWrite } else { Begins::Not }
    }

    /// The bytes of a packet end, as far as they are stored, within this head: a message begins all the same.
    fn cut(&self, side: usize, bytes: &[u8]) -> Option<Part> {
        let begins = match self {
            Grammar::Http1(_) => http1::begins(side, bytes),
            Grammar::Memcached => memcached::begins(side, bytes),
            Grammar::Resp(_) => resp::begins(side, bytes),
            // Their heads are short, and what they say stands in them.
            _ => false,
        };
        begins.then_some(Part::message(0))
    }

    /// The bytes of a packet end, as far as they are stored, within this head of what is the protocol's own: of so many bytes, whatever the rest says.
    fn cut_control(&self, bytes: &[u8]) -> Option<u64> {
        match self {
            Grammar::Http2(_) => http2::cut(bytes),
            _ => None,
        }
    }

    /// What stands at a place of `side`, and begins nothing of this protocol, shows that it is another one.
    fn is_denied(&self, side: usize) -> bool {
        match self {
            Grammar::Frames(frames) => frames.is_denied(side),
            Grammar::Prefixed(prefixed) => !prefixed.is_proven(),
            _ => false,
        }
    }

    fn resynchronise(&mut self, side: usize) {
        match self {
            Grammar::Http1(http1) => http1.resynchronise(side),
            Grammar::Resp(resp) => resp.resynchronise(side),
            _ => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// Of this stream.
    Surely(u32),
    BehindAWrite,
    Not,
}

impl Begins {
    fn surely(found: bool, stream: u32) -> Begins {
        if found { Begins::Surely(stream) } else { Begins::Not }
    }
}

/// The protocol that a client's packet begins as, though too little of it is stored to read a message: of those in which turns tell no requests.
fn cut_before_its_head(data: &Data<'_>) -> Option<Protocol> {
    if data.stored.len() as u64 == data.to - data.from {
        return None;
    }
    match data.stored {
        [22 | 23, 3] | [22 | 23, 3, 0..=4, ..] => Some(Protocol::Tls),
        [b'*', b'1'..=b'9', ..] => Some(Protocol::Redis),
        _ => None,
    }
}

/// Reads the messages of one connection.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Reader {
    tries: u8,
    /// What its first packet begins as, where no more of it is stored.
    cut: Option<Protocol>,
    read: Option<Box<Read>>,
}

#[derive(Serialize, Deserialize)]
struct Read {
    grammar: Grammar,
    lanes: [Lane; 2],
    calls: Calls,
    misread: u32,
}

/// A data packet as its connection knows it.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub side: usize,
    /// Place of its first byte, and of the one behind its last.
    pub from: u64,
    pub to: u64,
    /// The place behind the last byte of the other direction.
    pub other: u64,
    /// What is stored of it.
    pub stored: &'a [u8],
    pub at: u64,
    pub pushed: bool,
    /// Its receiver has said that it has all before this place.
    pub acked: u64,
    /// The turn in progress.
    pub turn: u32,
    /// Its sender has all that the other side sent.
    pub has_all: bool,
}

impl Reader {
    /// A data packet. Says what was read since the connection was idle, if that is more than a turn says.
    #[inline]
    pub fn data(&mut self, data: Data<'_>) -> Option<Stretch> {
        if self.read.is_none() {
            if self.tries >= TRIES {
                return None;
            }
            self.recognise(&data);
        }
        if data.side == CLIENT && self.read.as_mut()?.is_disproved(&data) {
            (self.read, self.tries) = (None, TRIES);
        }
        let read = self.read.as_mut()?;
        let mut over = if data.side == CLIENT { read.over(&data) } else { None };
        if data.side == CLIENT && read.grammar.is_over() {
            let upgraded = matches!(&read.grammar, Grammar::Http1(http1) if http1.upgraded);
            *self = Reader::default();
            if upgraded && websocket::is_client(data.stored) {
                // An upgrade that is the connection's first exchange is its handshake.
                let turn = if data.turn <= 1 { 0 } else { data.turn };
                over = over.filter(|_| turn > 0);
                self.read = Some(Box::new(Read::begin(Grammar::WebSocket, &data, turn)));
            } else {
                self.recognise(&data);
            }
        }
        if self.read.as_mut().is_some_and(|read| read.data(data)) {
            self.read = None;
        }
        over
    }

    #[cold]
    fn recognise(&mut self, data: &Data<'_>) {
        if data.side != CLIENT {
            return;
        }
        if self.tries == 0 {
            self.cut = cut_before_its_head(data);
        }
        self.tries += 1;
        if let Some(grammar) = Grammar::of(data.stored, (data.to - data.from) as usize) {
            // MySQL's server greets first: that is a part of the handshake, as what the client says to it.
            let greeted = data.turn <= 1 && matches!(grammar, Grammar::MySql(_)) && mysql::opens(data.stored);
            let turn = if greeted { 0 } else { data.turn };
            self.read = Some(Box::new(Read::begin(grammar, data, turn)));
        }
    }

    /// The client has said that it has all of the server's bytes before `acked`, of which the tap saw the last at `passed`; `twice`, that it had these already.
    #[inline]
    pub fn acknowledged(
        &mut self,
        acked: u64,
        passed: Option<u64>,
        at: u64,
        by_itself: bool,
        twice: Option<(u64, u64)>,
        way: Way,
    ) {
        if let Some(read) = &mut self.read {
            read.calls.acknowledged(acked, passed, at, by_itself, twice, way);
        }
    }

    /// The capture is over, in this turn.
    pub fn finish(&mut self, turn: u32) -> (Option<Stretch>, ReadCounts) {
        match &mut self.read {
            Some(read) => {
                read.calls.resolve();
                let last = read.calls.close(turn);
                (last, read.calls.counts())
            }
            None => (
                None,
                ReadCounts {
                    protocol: self.cut,
                    unread: self.cut.map_or(0, |_| turn),
                    hidden: self.cut.map_or(0, |_| turn),
                    ..ReadCounts::default()
                },
            ),
        }
    }
}

impl Read {
    /// From this packet of the client on.
    fn begin(grammar: Grammar, data: &Data<'_>, turn: u32) -> Read {
        let calls = Calls::new(grammar.protocol(), turn);
        let mut lanes: [Lane; 2] = Default::default();
        lanes[SERVER].begins_at(data.other);
        Read { grammar, lanes, calls, misread: 0 }
    }

    /// Frames of an unknown protocol are none, as the server's answers show when the client goes on.
    fn is_disproved(&mut self, data: &Data<'_>) -> bool {
        let Grammar::Prefixed(prefixed) = &mut self.grammar else { return false };
        let lane = &self.lanes[SERVER];
        if prefixed.is_proven() || !data.has_all || data.from < self.lanes[CLIENT].place() || !self.calls.is_answered()
        {
            return false;
        }
        prefixed.is_disproved(if !lane.is_between() || self.calls.is_odd() {
            prefixed::Shows::Another
        } else if !self.calls.has_unseen_answers() && self.calls.is_idle(lane.has_written()) {
            prefixed::Shows::Settled
        } else {
            prefixed::Shows::Unsettled
        })
    }

    /// What is over as the client goes on: all, if nothing is under way.
    fn over(&mut self, data: &Data<'_>) -> Option<Stretch> {
        let lane = &self.lanes[SERVER];
        let new = data.from >= self.lanes[CLIENT].place();
        if data.has_all && new && lane.is_between() && self.calls.is_idle(lane.has_written()) {
            self.calls.close(data.turn)
        } else {
            self.calls.shorten(data.turn)
        }
    }

    /// True if the packet shows that it is another protocol.
    fn data(&mut self, data: Data<'_>) -> bool {
        let Data { side, from, to, stored, at, pushed, acked, .. } = data;
        let packet = Packet { from, to, stored, at, pushed };
        let Read { grammar, lanes, calls, misread } = self;
        calls.packet(side, at);
        let mut reading = lane::Reading { side, grammar, calls, misread: 0, denied: false };
        lanes[side].packet(packet, acked, &mut reading);
        let denied = reading.denied;
        *misread += reading.misread;
        if *misread >= MISREAD {
            calls.give_up();
        }
        denied
    }
}
