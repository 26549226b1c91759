//! The record goes to its file in a thread of its own: the switch never waits for a disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// The thread that writes.
#[derive(Debug)]
pub struct Writer {
    pieces: Option<Sender<Vec<u8>>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// A new file.
    pub fn new(path: &Path) -> io::Result<Writer> {
        let mut file = File::create(path)?;
        let (pieces, taken) = channel::<Vec<u8>>();
        let thread = std::thread::spawn(move || taken.iter().try_for_each(|piece| file.write_all(&piece)));
        Ok(Writer { pieces: Some(pieces), thread })
    }

    /// Appends a piece, some time.
    pub fn write(&self, piece: Vec<u8>) {
        if let Some(pieces) = &self.pieces {
            // The thread has ended only if it could not write: `finish` says why.
            let _ = pieces.send(piece);
        }
    }

    /// Waits until everything is written.
    pub fn finish(mut self) -> io::Result<()> {
        self.pieces = None;
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes the record panicked")))
    }
}
