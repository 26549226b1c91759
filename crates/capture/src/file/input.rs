//! Bytes from a file or pipe, plain or gzip, through one buffer of fixed size.

use crate::Damage;
use flate2::bufread::MultiGzDecoder;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

/// Room for the largest frame with its block, and few enough system calls.
pub(super) const BUFFER: usize = 1 << 20;

/// How many stored (compressed) bytes have been read.
#[derive(Clone, Default)]
pub(crate) struct Position(Rc<Cell<u64>>);

impl Position {
    /// Bytes so far.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    position: Position,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.position.0.set(self.position.0.get() + n as u64);
        Ok(n)
    }
}

/// The (uncompressed) data with a window of up to [`BUFFER`] bytes ahead.
pub(crate) struct Input<'a> {
    source: Box<dyn Read + 'a>,
    gzip: bool,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the data of `buffer[start]`.
    offset: u64,
    frame: std::ops::Range<usize>,
    ended: bool,
    fault: Option<Damage>,
}

impl<'a> Input<'a> {
    /// Looks at the first bytes and unpacks gzip where it finds it, whatever the name.
    ///
    /// # Errors
    /// What the reader says on the first read (`EISDIR`, for one).
    pub fn new(reader: impl Read + 'a) -> io::Result<(Input<'a>, Position)> {
        let position = Position::default();
        let mut raw = BufReader::with_capacity(1 << 18, Counted { inner: reader, position: position.clone() });
        let gzip = raw.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let source: Box<dyn Read + 'a> = if gzip { Box::new(MultiGzDecoder::new(raw)) } else { Box::new(raw) };
        let input = Input {
            source,
            gzip,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            offset: 0,
            frame: 0..0,
            ended: false,
            fault: None,
        };
        Ok((input, position))
    }

    /// Makes `want` bytes available ahead if the data has them; says how many there are, up to `want` or more.
    #[inline]
    pub fn fill(&mut self, want: usize) -> usize {
        if self.end - self.start < want {
            self.read_more(want.min(BUFFER));
        }
        self.end - self.start
    }

    #[cold]
    fn read_more(&mut self, want: usize) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < want && !self.ended {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.ended = true;
                    self.fault = Some(match e.kind() {
                        io::ErrorKind::UnexpectedEof if self.gzip => Damage::GzipCut,
                        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if self.gzip => {
                            Damage::GzipCorrupt(e.to_string())
                        }
                        _ => Damage::Read(e.to_string()),
                    });
                }
            }
        }
    }

    /// What is buffered ahead.
    #[inline]
    pub fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Goes over `n` buffered bytes.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    /// Goes over `n` bytes, buffered or not; false if the data ends before.
    pub fn skip(&mut self, mut n: u64) -> bool {
        while n > 0 {
            let step = self.fill(1).min(usize::try_from(n).unwrap_or(usize::MAX));
            if step == 0 {
                return false;
            }
            self.advance(step);
            n -= step as u64;
        }
        true
    }

    /// Remembers `length` bytes ahead, `skip` bytes on, as the frame.
    #[inline]
    pub fn mark_frame(&mut self, skip: usize, length: usize) {
        self.frame = self.start + skip..self.start + skip + length;
    }

    /// The frame marked last; valid until the next [`Input::fill`].
    #[inline]
    pub fn frame(&self) -> &[u8] {
        &self.buffer[self.frame.clone()]
    }

    /// Where in the data the window begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Why the data ended, if not because it was over. Counts only once all that came before is used up.
    pub fn fault(&self) -> Option<Damage> {
        self.fault.clone()
    }

    /// The data is compressed.
    pub fn is_gzip(&self) -> bool {
        self.gzip
    }
}
