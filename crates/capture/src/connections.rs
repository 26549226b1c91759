//! The rows of a capture, packed: of a million connections most have counted little, and their rows would be most of what is kept.

use crate::{Analysis, Connection};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use std::marker::PhantomData;
use std::net::IpAddr;

/// Bytes of a page: small enough to take the place of what was freed.
const PAGE: usize = 1 << 16;

/// More than a packed row takes.
const ROOM: usize = 1 << 10;

/// Rows in their order. Each is unpacked as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<T> {
    pages: Vec<Vec<u8>>,
    /// Where each begins, counted in whole pages.
    begins: Vec<u64>,
    of: PhantomData<T>,
}

/// Connections in order of their first packet.
pub type Connections = Packed<Connection>;

impl<T> Default for Packed<T> {
    fn default() -> Packed<T> {
        Packed::with_capacity(0)
    }
}

impl<T> Packed<T> {
    /// None yet, with room for so many.
    pub(crate) fn with_capacity(count: usize) -> Packed<T> {
        Packed { pages: Vec::new(), begins: Vec::with_capacity(count), of: PhantomData }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.begins.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.begins.is_empty()
    }
}

#[cfg(test)]
impl<T> Packed<T> {
    /// What rows and their places take.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.iter().map(Vec::len).sum::<usize>() + 8 * self.begins.len()
    }
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    /// One more.
    pub(crate) fn push(&mut self, row: &T) {
        if self.pages.last().is_none_or(|page| page.len() + ROOM > PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        let number = self.pages.len() - 1;
        let page = &mut self.pages[number];
        self.begins.push((number * PAGE + page.len()) as u64);
        *page = postcard::to_extend(row, std::mem::take(page)).expect("numbers and addresses, which have a form");
    }

    /// The row of a number.
    pub fn get(&self, number: usize) -> Option<T> {
        let begin = *self.begins.get(number)? as usize;
        let packed = &self.pages[begin / PAGE][begin % PAGE..];
        Some(postcard::from_bytes(packed).expect("a row that was packed"))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + '_ {
        (0..self.len()).map(|number| self.get(number).expect("there are so many"))
    }
}

impl Analysis {
    /// The packets of this connection are those of another one of the same host, under other addresses.
    pub(crate) fn is_another_copy(&self, c: &Connection, host: IpAddr) -> bool {
        let original = c.copy_of.and_then(|original| self.connections.get(original as usize));
        original.is_some_and(|of| of.client_ip == host || of.server_ip == host)
    }
}

impl<T: Serialize + DeserializeOwned> FromIterator<T> for Packed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Packed<T> {
        let all = all.into_iter();
        let mut packed = Packed::with_capacity(all.size_hint().0);
        all.for_each(|row| packed.push(&row));
        packed
    }
}

impl<T: Serialize + DeserializeOwned> Serialize for Packed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{DirectionStats, ReadCounts, WriteCounts};

    /// A connection of which every number is as large as it can be, or none is.
    pub(crate) fn connection(number: u32, count: u64) -> Connection {
        let ip = if count == 0 { [10, 0, 0, 1].into() } else { [u16::MAX; 8].into() };
        let side = DirectionStats {
            packets: count,
            payload_bytes: count,
            rtt_samples: count,
            min_rtt_ns: Some(count),
            backoffs_small: count,
            ..DirectionStats::default()
        };
        Connection {
            connection: number,
            client_ip: ip,
            client_port: u16::MAX,
            server_ip: ip,
            server_port: 80,
            start_ns: count,
            end_ns: count,
            handshake_seen: true,
            handshake_rtt_ns: Some(count),
            handshake_server_ns: None,
            handshake_client_ns: None,
            turns: number,
            writes: WriteCounts::default(),
            messages: ReadCounts::default(),
            copy_of: None,
            to_server: side,
            to_client: side,
        }
    }

    #[test]
    fn connections_come_back_as_they_were_over_many_pages() {
        let all: Vec<_> = (0..5000).map(|n| connection(n, if n % 3 == 0 { u64::MAX } else { 0 })).collect();
        let packed: Connections = all.iter().cloned().collect();
        // 64 KiB, of which up to 1 KiB and a connection stay free.
        let full = packed.pages.split_last().map(|(_, full)| full.iter().map(Vec::len).collect::<Vec<_>>()).unwrap();
        assert!(full.len() > 2 && full.iter().all(|bytes| (64_513..65_024).contains(bytes)), "{full:?}");
        assert_eq!(packed.len(), 5000);
        assert!(packed.iter().eq(all.iter().cloned()));
        assert_eq!((packed.get(4999), packed.get(5000)), (Some(all[4999].clone()), None));
    }
}
