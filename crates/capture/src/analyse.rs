//! The one pass over a capture.

use crate::conn::LARGEST_ON_WIRE;
use crate::decode::{Decoded, decode, knows_linktype};
use crate::file::{CaptureFile, Frame, Input, Position};
use crate::fitness::{Counted, Measured, Resolution};
use crate::hosts::Hosts;
use crate::inflight;
use crate::table::Table;
use crate::timeline::{Clock, Noted, Sorter};
use crate::{
    Analysis, Burst, CaptureError, Connection, Connections, Options, Partial, Progress, Protocol, Sink, Stretch,
    Summary, Train, Turn, Warning, Write,
};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// A protocol of which a larger share of requests could not be read is worth a word.
const UNREAD: f64 = 0.01;
/// Packets between two calls of the progress callback: a few milliseconds of work.
const PROGRESS_EVERY: u64 = 1 << 15;

/// Analyses the capture at `path`, keeping every row.
///
/// `progress` is called every few milliseconds; answering [`ControlFlow::Break`] ends the work with [`CaptureError::Interrupted`].
///
/// # Errors
/// When the file cannot be read or holds no TCP. A file damaged behind its first packet is not an error: see [`Analysis::partial`].
pub fn analyse(
    path: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Analysis, CaptureError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => CaptureError::NotFound { path: path.to_path_buf() },
        io::ErrorKind::IsADirectory => CaptureError::IsDirectory { path: path.to_path_buf() },
        _ => CaptureError::Io { path: path.to_path_buf(), source },
    };
    let about = fs::metadata(path).map_err(failed)?;
    if about.is_dir() {
        return Err(CaptureError::IsDirectory { path: path.to_path_buf() });
    }
    let total = about.is_file().then_some(about.len());
    analyse_reader(File::open(path).map_err(failed)?, path, total, options, progress)
}

/// Analyses a capture from any reader (a pipe, a buffer), keeping every row. `name` appears in results and messages.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_reader(
    reader: impl Read,
    name: &Path,
    total: Option<u64>,
    options: &Options,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Analysis, CaptureError> {
    let mut rows = Rows::default();
    let mut found = analyse_into(reader, name, total, options, &mut rows, progress)?;
    // No two rows have equal keys, so that these need no memory for a stable order.
    rows.turns.sort_unstable_by_key(|r| (r.request_start_ns.or(r.response_start_ns), r.connection, r.turn));
    rows.trains.sort_unstable_by_key(|r| (r.start_ns, r.connection, r.direction));
    rows.bursts.sort_by_key(|r| (r.start_ns, r.connection, r.direction));
    // Stable: those of one chain are in their order.
    rows.writes.sort_by_key(|r| (r.connection, r.turn, r.direction));
    rows.stretches.sort_by_key(|r| (r.connection, r.turn));
    (found.turns, found.trains, found.bursts) = (rows.turns, rows.trains, rows.bursts);
    (found.writes, found.stretches) = (rows.writes, rows.stretches);
    Ok(found)
}

/// Analyses a capture, handing turns, trains and bursts to `sink` as they end: memory grows with the number of connections only.
///
/// The returned [`Analysis`] has none of those rows.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_into(
    reader: impl Read,
    name: &Path,
    total: Option<u64>,
    options: &Options,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Analysis, CaptureError> {
    let (input, position) = Input::new(reader).map_err(|source| match source.kind() {
        io::ErrorKind::IsADirectory => CaptureError::IsDirectory { path: name.to_path_buf() },
        _ => CaptureError::Io { path: name.to_path_buf(), source },
    })?;
    let file = CaptureFile::open(input, name)?;
    if let Some(linktype) = file.only_linktype().filter(|&l| !knows_linktype(l)) {
        return Err(CaptureError::UnknownLinktype { path: name.to_path_buf(), linktype });
    }
    Pass::new(options).run(file, &position, total, name, sink, progress)
}

/// What is known on the way.
struct Pass {
    clock: Clock,
    sorter: Sorter,
    table: Table,
    tcp_packets: u64,
    payload: u64,
    resolution: Resolution,
    fraction: Noted,
    no_time: Noted,
    stored_more: Noted,
    bad: Noted,
    cut: Noted,
    fragments: Noted,
    unknown_links: BTreeMap<u32, u64>,
}

impl Pass {
    fn new(options: &Options) -> Pass {
        Pass {
            clock: Clock::default(),
            sorter: Sorter::new(),
            table: Table::new(options),
            tcp_packets: 0,
            payload: 0,
            resolution: Resolution::default(),
            fraction: Noted::default(),
            no_time: Noted::default(),
            stored_more: Noted::default(),
            bad: Noted::default(),
            cut: Noted::default(),
            fragments: Noted::default(),
            unknown_links: BTreeMap::new(),
        }
    }

    fn run(
        mut self,
        mut file: CaptureFile<'_>,
        position: &Position,
        total: Option<u64>,
        name: &Path,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Analysis, CaptureError> {
        let damage = loop {
            match file.next() {
                Ok(Some(frame)) => {
                    let packet = file.packets();
                    self.frame(&file, &frame, sink);
                    if packet.is_multiple_of(PROGRESS_EVERY) {
                        let now = Progress { bytes_read: position.get(), bytes_total: total, packets: packet };
                        if progress(now).is_break() {
                            return Err(CaptureError::Interrupted { path: name.to_path_buf(), packets: packet });
                        }
                    }
                }
                Ok(None) => break None,
                Err(damage) => break Some(damage),
            }
        };
        while let Some(next) = self.sorter.pop(&self.clock) {
            self.table.segment(&next, sink);
        }
        let partial = damage.map(|damage| Partial { packets: file.packets(), at_byte: file.offset(), damage });
        self.refuse_without_tcp(&file, name, partial.as_ref())?;
        // The last call says that it is over; it is too late to stop.
        let _ = progress(Progress { bytes_read: position.get(), bytes_total: total, packets: file.packets() });
        Ok(self.results(&file, name, partial, sink))
    }

    /// One packet of the file: what it is, and who it belongs to. Segments reach their connection in order of time.
    fn frame(&mut self, file: &CaptureFile<'_>, frame: &Frame, sink: &mut dyn Sink) {
        let packet = file.packets();
        let t = self.clock.at(frame.t_ns, packet, self.sorter.last_released());
        if frame.bad_fraction {
            self.fraction.note(packet);
        }
        if frame.t_ns.is_none() {
            self.no_time.note(packet);
        }
        if frame.stored > frame.original {
            self.stored_more.note(packet);
        }
        match decode(frame.linktype, file.bytes(), frame.original) {
            Decoded::Tcp(segment) => {
                self.tcp_packets += 1;
                self.payload += u64::from(segment.payload);
                self.resolution.stamp(t);
                if segment.bad {
                    self.bad.note(packet);
                }
                if file.several_interfaces() {
                    self.sorter.widen();
                }
                self.sorter.push(t, packet, segment, segment.stored(file.bytes()));
                while let Some(next) = self.sorter.ripe(t, &self.clock) {
                    self.table.segment(&next, sink);
                    self.sorter.used(next);
                }
            }
            Decoded::Other => {}
            Decoded::Fragment => self.fragments.note(packet),
            Decoded::Cut => self.cut.note(packet),
            Decoded::Bad => self.bad.note(packet),
            Decoded::UnknownLink => *self.unknown_links.entry(frame.linktype).or_default() += 1,
        }
    }

    fn refuse_without_tcp(
        &self,
        file: &CaptureFile<'_>,
        name: &Path,
        partial: Option<&Partial>,
    ) -> Result<(), CaptureError> {
        let path = || name.to_path_buf();
        match (self.tcp_packets, file.packets(), partial) {
            (1.., _, _) => Ok(()),
            (0, 0, Some(p)) => {
                Err(CaptureError::Damaged { path: path(), damage: p.damage.clone(), at_byte: p.at_byte })
            }
            (0, 0, None) => Err(CaptureError::NoPackets { path: path() }),
            (0, packets, partial) => Err(match self.unknown_links.iter().next() {
                Some((&linktype, _)) => CaptureError::UnknownLinktype { path: path(), linktype },
                None => CaptureError::NoTcp { path: path(), packets, cut: self.cut.packets, partial: partial.cloned() },
            }),
        }
    }

    fn results(
        mut self,
        file: &CaptureFile<'_>,
        name: &Path,
        partial: Option<Partial>,
        sink: &mut dyn Sink,
    ) -> Analysis {
        let start = self.sorter.start().unwrap_or(0);
        let summary = Summary {
            file: name.display().to_string(),
            format: file.format(),
            packets: file.packets(),
            tcp_packets: self.tcp_packets,
            connections: self.table.len() as u64,
            payload_bytes: self.payload,
            start_epoch_ns: start,
            duration_ns: self.clock.latest().abs_diff(start),
        };
        let mut warnings = self.warnings();
        let links = self.table.take_links();
        let mut connections = Connections::with_capacity(self.table.len());
        let (mut about, mut hosts) = (About::default(), Hosts::default());
        let copies = &self.table.copies;
        let counted = Counted {
            packets: self.tcp_packets,
            in_file: file.packets(),
            dropped: file.dropped(),
            cut: self.cut.packets,
            late: self.sorter.late.packets,
            jumps: self.clock.jumps.packets,
            leap: self.table.silence.leap,
            merged: links.iter().map(|link| link.merged_packets).sum(),
            copies: self.table.mirrored.packets,
            copies_apart: copies.longest,
            translated: copies.translated,
        };
        let mut measured = Measured::default();
        for c in self.table.into_connections() {
            let quality = c.quality();
            let c = c.finish(sink);
            about.add(&c);
            measured.add(&quality, &c);
            hosts.add(&c);
            connections.push(&c);
        }
        warnings.extend(about.warnings());
        Analysis {
            summary,
            connections,
            turns: vec![],
            trains: vec![],
            bursts: vec![],
            writes: vec![],
            stretches: vec![],
            hosts: hosts.ranked(),
            links,
            fitness: measured.judged(counted, self.resolution),
            warnings,
            partial,
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut all = Vec::new();
        let mut say = |noted: Noted, warning: fn(u64, u64) -> Warning| {
            if noted.packets > 0 {
                all.push(warning(noted.packets, noted.first));
            }
        };
        say(self.table.mirrored, |packets, first| Warning::Mirrored { packets, first });
        say(self.clock.unsorted, |packets, first| Warning::Unsorted { packets, first });
        say(self.sorter.late, |packets, first| Warning::TooLate { packets, first });
        say(self.fraction, |packets, first| Warning::BadFraction { packets, first });
        say(self.no_time, |packets, first| Warning::NoTime { packets, first });
        say(self.stored_more, |packets, first| Warning::StoredMoreThanOriginal { packets, first });
        say(self.bad, |packets, first| Warning::BadHeaders { packets, first });
        say(self.cut, |packets, first| Warning::HeadersCut { packets, first });
        say(self.fragments, |packets, first| Warning::Fragments { packets, first });
        let jumps = self.clock.jumps;
        if jumps.packets > 0 {
            all.push(Warning::ClockJump { packets: jumps.packets, first: jumps.first, back_ns: self.clock.first_jump });
        }
        all.extend(
            self.unknown_links.iter().map(|(&linktype, &packets)| Warning::UnknownLinktype { linktype, packets }),
        );
        all
    }
}

/// What a reader should know of the connections.
#[derive(Default)]
struct About {
    of: u64,
    one_sided: u64,
    unopened: u64,
    /// Bytes that are not in the file, and how many connections lack some.
    missing: (u64, u64),
    /// The largest segment that is more than its receiver takes at once.
    merged: Option<u32>,
    /// Per protocol: requests that were read, that were not, and how many of the latter are on connections that lack stored payload.
    messages: BTreeMap<Protocol, (u64, u64, u64)>,
    /// Of connections of no known protocol: what the ends of writes show ([`inflight::ends`]).
    unknown: [u64; 4],
}

impl About {
    fn add(&mut self, c: &Connection) {
        self.of += 1;
        self.one_sided += u64::from(c.to_server.packets == 0 || c.to_client.packets == 0);
        self.unopened += u64::from(c.to_server.syn + c.to_client.syn == 0);
        let missing = c.to_server.missing_bytes + c.to_client.missing_bytes;
        self.missing = (self.missing.0 + missing, self.missing.1 + u64::from(missing > 0));
        if let Some(protocol) = c.messages.protocol {
            let (read, unread, cut) = self.messages.entry(protocol).or_default();
            *read += u64::from(c.messages.read);
            // What may hold more requests than were read counts as one that was not.
            *unread += u64::from(c.messages.unread.max(c.messages.hidden));
            let lacking = c.messages.unseen_bytes > 0 && protocol != Protocol::Tls;
            *cut += if lacking { u64::from(c.messages.unread) } else { 0 };
            *cut += u64::from(c.messages.hidden);
        } else {
            for (sum, count) in self.unknown.iter_mut().zip(inflight::ends(c.writes)) {
                *sum += count;
            }
        }
        for (side, peer) in [(&c.to_server, &c.to_client), (&c.to_client, &c.to_server)] {
            if side.largest_segment > peer.mss_option.map_or(LARGEST_ON_WIRE, u32::from) {
                self.merged = self.merged.max(Some(side.largest_segment));
            }
        }
    }

    fn warnings(self) -> impl Iterator<Item = Warning> {
        let About { of, one_sided, unopened, missing: (bytes, lacking), merged, messages, unknown } = self;
        let one_sided = (one_sided > 0).then_some(Warning::OneSided { connections: one_sided, of });
        let unopened = (unopened > 0).then_some(Warning::NoHandshake { connections: unopened, of });
        let missing = (bytes > 0).then_some(Warning::MissingData { bytes, connections: lacking });
        merged
            .map(|largest| Warning::MergedSegments { largest })
            .into_iter()
            .chain(one_sided)
            .chain(unopened)
            .chain(missing)
            .chain(messages.into_iter().filter_map(|(protocol, (read, unread, cut))| {
                let of = read + unread;
                (unread as f64 > UNREAD * of as f64).then_some(Warning::MessagesUnread {
                    protocol: Some(protocol),
                    unread,
                    of,
                    cut: cut > 0,
                })
            }))
            .chain(inflight::are_mixed(unknown).map(|(unread, of)| Warning::MessagesUnread {
                protocol: None,
                unread,
                of,
                cut: false,
            }))
    }
}

/// Keeps every row.
#[derive(Default)]
struct Rows {
    turns: Vec<Turn>,
    trains: Vec<Train>,
    bursts: Vec<Burst>,
    writes: Vec<Write>,
    stretches: Vec<Stretch>,
}

impl Sink for Rows {
    fn turn(&mut self, turn: Turn) {
        self.turns.push(turn);
    }
    fn train(&mut self, train: Train) {
        self.trains.push(train);
    }
    fn burst(&mut self, burst: Burst) {
        self.bursts.push(burst);
    }
    fn stretch(&mut self, stretch: Stretch) {
        self.stretches.push(stretch);
    }
    fn write(&mut self, write: Write) {
        self.writes.push(write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_message_in_a_hundred_that_was_not_read_is_said() {
        let said = |read: u64, unread: u64| {
            let messages = BTreeMap::from([(Protocol::Http1, (read, unread, 0))]);
            About { messages, ..About::default() }.warnings().count()
        };
        assert_eq!((said(990, 10), said(989, 11)), (0, 1));
    }
}
