//! The rows of a capture, packed: of a million connections most have counted little, and their rows would be most of what is kept.

use crate::{Analysis, Connection};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes of a page: small enough to take the place of what was freed.
const PAGE: usize = 1 << 16;

/// More than a packed row takes.
const ROOM: usize = 1 << 10;

/// Rows in their order. Each is unpacked as it is asked for.
#[derive(Clone, Debug)]
pub struct Packed<T> {
    pages: Pages,
    /// Where each begins, counted in whole pages.
    begins: Vec<u64>,
    of: PhantomData<T>,
}

/// Where the rows are.
#[derive(Clone, Debug)]
enum Pages {
    Here(Vec<Vec<u8>>),
    /// In a file that no folder names, each in its place: read as they are asked for.
    Aside(Arc<File>),
}

impl Pages {
    /// What is in a page from a place on, at most so much.
    fn read(&self, number: usize, from: usize, most: usize) -> Cow<'_, [u8]> {
        match self {
            Pages::Here(pages) => {
                let page = &pages[number];
                Cow::Borrowed(&page[from..page.len().min(from + most)])
            }
            Pages::Aside(file) => {
                let mut bytes = vec![0; most.min(PAGE - from)];
                let mut filled = 0;
                while filled < bytes.len() {
                    let place = (number * PAGE + from + filled) as u64;
                    match file.read_at(&mut bytes[filled..], place).expect("a file of this process alone") {
                        0 => break,
                        read => filled += read,
                    }
                }
                bytes.truncate(filled);
                Cow::Owned(bytes)
            }
        }
    }
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
        Packed { pages: Pages::Here(Vec::new()), begins: Vec::with_capacity(count), of: PhantomData }
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

impl<T> Packed<T> {
    /// Moves the rows into an empty file without a name. The kernel caches its pages while memory is free. If the file cannot take the rows, they stay in
    /// memory.
    ///
    /// # Errors
    /// The system's.
    pub fn put_aside(&mut self, file: File) -> io::Result<()> {
        if let Pages::Here(pages) = &self.pages {
            for (number, page) in pages.iter().enumerate() {
                file.write_all_at(page, (number * PAGE) as u64)?;
            }
            self.pages = Pages::Aside(Arc::new(file));
        }
        Ok(())
    }
}

/// Wherever they are.
impl<T: Serialize + DeserializeOwned + PartialEq> PartialEq for Packed<T> {
    fn eq(&self, other: &Packed<T>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Serialize + DeserializeOwned + Eq> Eq for Packed<T> {}

#[cfg(test)]
impl<T> Packed<T> {
    /// The pages, where they are in memory.
    fn here(&self) -> &[Vec<u8>] {
        if let Pages::Here(pages) = &self.pages { pages } else { &[] }
    }

    /// What rows and their places take.
    pub(crate) fn bytes(&self) -> usize {
        self.here().iter().map(Vec::len).sum::<usize>() + 8 * self.begins.len()
    }
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    /// One more, where none are aside yet.
    pub(crate) fn push(&mut self, row: &T) {
        let Pages::Here(pages) = &mut self.pages else { return };
        if pages.last().is_none_or(|page| page.len() + ROOM > PAGE) {
            pages.push(Vec::with_capacity(PAGE));
        }
        let number = pages.len() - 1;
        let page = &mut pages[number];
        self.begins.push((number * PAGE + page.len()) as u64);
        *page = postcard::to_extend(row, std::mem::take(page)).expect("numbers and addresses, which have a form");
    }

    /// The row of a number.
    pub fn get(&self, number: usize) -> Option<T> {
        let begin = *self.begins.get(number)? as usize;
        Some(row(&self.pages.read(begin / PAGE, begin % PAGE, ROOM)))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + '_ {
        let (mut number, mut page) = (usize::MAX, Cow::default());
        self.begins.iter().map(move |&begin| {
            let begin = begin as usize;
            if number != begin / PAGE {
                number = begin / PAGE;
                page = self.pages.read(number, 0, PAGE);
            }
            row(&page[begin % PAGE..])
        })
    }
}

/// The row that these bytes begin with.
fn row<T: DeserializeOwned>(packed: &[u8]) -> T {
    postcard::from_bytes(packed).expect("a row that was packed")
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
    use std::sync::atomic::{AtomicU32, Ordering};

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
        let full = packed.here().split_last().map(|(_, full)| full.iter().map(Vec::len).collect::<Vec<_>>()).unwrap();
        assert!(full.len() > 2 && full.iter().all(|bytes| (64_513..65_024).contains(bytes)), "{full:?}");
        assert_eq!(packed.len(), 5000);
        assert!(packed.iter().eq(all.iter().cloned()));
        assert_eq!((packed.get(4999), packed.get(5000)), (Some(all[4999].clone()), None));

        let mut aside = packed.clone();
        aside.put_aside(unnamed()).unwrap();
        assert!(aside.here().is_empty() && aside == packed);
        assert_eq!((aside.len(), aside.get(4999), aside.get(5000)), (5000, Some(all[4999].clone()), None));
        assert!((0..5000).all(|n| aside.get(n).as_ref() == all.get(n)));
    }

    #[test]
    fn rows_stay_in_memory_where_no_file_takes_them() {
        let mut packed: Connections = (0..5000).map(|n| connection(n, u64::MAX)).collect();
        let before = packed.clone();
        assert!(packed.put_aside(File::options().write(true).open("/dev/full").unwrap()).is_err());
        assert!(!packed.here().is_empty() && packed == before);
    }

    /// A file that no folder names.
    pub(crate) fn unnamed() -> File {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fanin-rows-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }
}
