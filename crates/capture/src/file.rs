//! Capture files: a stream of frames, whatever the container.
//!
//! The containers are decoded by hand rather than with `pcap-parser` or `pcap-file`: a damaged file must end with the packet and the byte
//! at which it is damaged, everything before must be used, and the frames must come without a copy. Those crates hand out owned
//! blocks or stop at an opaque parser error.

mod input;
mod pcap;
mod pcapng;

pub(crate) use input::{Input, Position};

use crate::{CaptureError, Damage};
use std::path::Path;

/// More stored bytes than this is damage: libpcap's and Wireshark's limit for ordinary link types.
const MAX_STORED: u32 = 262_144;

/// One packet as the capture tool stored it; its bytes are [`Input::frame`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Nanoseconds since 1970; none in pcapng simple packet blocks.
    pub t_ns: Option<i64>,
    /// Length on the wire, as the capture tool recorded it.
    pub original: u32,
    /// Stored bytes.
    pub stored: u32,
    /// What the bytes begin with.
    pub linktype: u32,
    /// The time stamp's fraction was a second or more.
    pub bad_fraction: bool,
}

/// A capture file, read from front to back.
pub(crate) struct CaptureFile<'a> {
    input: Input<'a>,
    container: Container,
    packets: u64,
}

enum Container {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

impl<'a> CaptureFile<'a> {
    /// Reads as much as is needed to know what the file is.
    pub fn open(mut input: Input<'a>, path: &Path) -> Result<CaptureFile<'a>, CaptureError> {
        let path = || path.to_path_buf();
        let have = input.fill(4);
        if have == 0 {
            return Err(match input.fault() {
                Some(damage) => CaptureError::Damaged { path: path(), damage, at_byte: 0 },
                None => CaptureError::Empty { path: path() },
            });
        }
        let begins = input.ahead();
        if let Some(with) = other_compression(begins) {
            return Err(CaptureError::Compressed { path: path(), with });
        }
        let damaged = |input: &Input<'_>, damage: Damage| CaptureError::Damaged {
            path: path(),
            damage: input.fault().unwrap_or(damage),
            at_byte: input.offset(),
        };
        let container = match begins.first_chunk::<4>() {
            Some(&magic) if pcap::is_magic(magic) => {
                if input.fill(pcap::FILE_HEADER) < pcap::FILE_HEADER {
                    return Err(damaged(&input, Damage::CutInFileHeader));
                }
                match pcap::Pcap::open(&mut input) {
                    Ok(p) => Container::Pcap(p),
                    Err(pcap::Refusal::Version(major, minor)) => {
                        return Err(CaptureError::UnsupportedVersion {
                            path: path(),
                            format: "pcap",
                            major,
                            minor,
                            supported: "2.0 to 2.4",
                        });
                    }
                    Err(pcap::Refusal::Damage(d)) => return Err(damaged(&input, d)),
                }
            }
            Some(&pcapng::SECTION_HEADER) => match pcapng::Pcapng::open(&mut input) {
                Ok(p) => Container::Pcapng(p),
                Err(Damage::SectionVersion(major, minor)) => {
                    return Err(CaptureError::UnsupportedVersion {
                        path: path(),
                        format: "pcapng",
                        major,
                        minor,
                        supported: "1.0 to 1.2",
                    });
                }
                Err(d) => return Err(damaged(&input, d)),
            },
            _ => return Err(CaptureError::NotACapture { path: path(), begins: describe(begins) }),
        };
        Ok(CaptureFile { input, container, packets: 0 })
    }

    /// The next packet; `None` at the end; damage ends the stream as well.
    ///
    /// A frame counts only when all its stored bytes are there, as in libpcap and Wireshark.
    pub fn next(&mut self) -> Result<Option<Frame>, Damage> {
        let number = self.packets + 1;
        let frame = match &mut self.container {
            Container::Pcap(p) => p.next(&mut self.input, number),
            Container::Pcapng(p) => p.next(&mut self.input, number),
        };
        match frame {
            Ok(Some(f)) => {
                self.packets = number;
                Ok(Some(f))
            }
            // A stream that broke says more than "the file ends here".
            Ok(None) => self.input.fault().map_or(Ok(None), Err),
            Err(d @ (Damage::CutInRecordHeader { .. } | Damage::CutInPacket { .. } | Damage::CutInBlock)) => {
                Err(self.input.fault().unwrap_or(d))
            }
            Err(d) => Err(d),
        }
    }

    /// Bytes of the frame that [`CaptureFile::next`] returned last.
    pub fn bytes(&self) -> &[u8] {
        self.input.frame()
    }

    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Where the next record begins, in the uncompressed data.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// `pcap`, `pcapng`, with the compression.
    pub fn format(&self) -> String {
        let name = match self.container {
            Container::Pcap(_) => "pcap",
            Container::Pcapng(_) => "pcapng",
        };
        format!("{name}{}", if self.input.is_gzip() { " (gzip)" } else { "" })
    }

    /// More than one interface is described so far: their packets come in the order in which a tool emptied its buffers.
    #[inline]
    pub fn several_interfaces(&self) -> bool {
        match &self.container {
            Container::Pcap(_) => false,
            Container::Pcapng(p) => p.several_interfaces(),
        }
    }

    /// Packets that did not reach the file, as the program that captured states in it; a classic pcap file does not say.
    pub fn dropped(&self) -> u64 {
        match &self.container {
            Container::Pcap(_) => 0,
            Container::Pcapng(p) => p.dropped(),
        }
    }

    /// The link type of a classic pcap file, which holds for all its packets.
    pub fn only_linktype(&self) -> Option<u32> {
        match &self.container {
            Container::Pcap(p) => Some(p.linktype),
            Container::Pcapng(_) => None,
        }
    }
}

/// Compressions other than gzip, by their first bytes.
fn other_compression(begins: &[u8]) -> Option<&'static str> {
    match begins {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
        [0xfd, b'7', b'z', b'X', ..] => Some("xz"),
        [b'B', b'Z', b'h', ..] => Some("bzip2"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("lz4"),
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        _ => None,
    }
}

/// First bytes for a message: as text where they are text, in hex otherwise.
fn describe(bytes: &[u8]) -> String {
    let some = &bytes[..bytes.len().min(12)];
    if some.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        format!("the text {:?}", String::from_utf8_lossy(some))
    } else {
        let hex: Vec<String> = some.iter().map(|b| format!("{b:02x}")).collect();
        format!("the bytes {}", hex.join(" "))
    }
}
