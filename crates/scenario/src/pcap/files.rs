//! Many capture files at once, each made when its first packet comes, and open only while it is written: a fat-tree has more ports
//! than a process may have files.

use fanin_capture::write::PcapWriter;
use fanin_units::Time;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Stored in memory before a file is opened for them.
const BUFFER: usize = 32 * 1024;

/// A file and what went wrong with it.
pub type Failure = (PathBuf, io::Error);

/// Capture files of a run, by number.
pub struct Files {
    folder: PathBuf,
    names: BTreeSet<String>,
    files: Vec<(PathBuf, Option<PcapWriter<Appender>>)>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Files {
    /// In a folder that exists.
    pub fn new(folder: &Path) -> Files {
        Files { folder: folder.to_path_buf(), names: BTreeSet::new(), files: Vec::new() }
    }

    /// A file for a place of this name, which may be no name for a file or taken already.
    pub fn add(&mut self, place: &str) -> usize {
        let safe: String =
            place.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
        let safe = safe.trim_start_matches('.');
        let stem = if safe.is_empty() { "place" } else { safe };
        let mut name = format!("{stem}.pcap");
        let mut n = 1;
        while !self.names.insert(name.clone()) {
            n += 1;
            name = format!("{stem}~{n}.pcap");
        }
        self.files.push((self.folder.join(&name), None));
        self.files.len() - 1
    }

    /// Writes a packet of which `headers` are known.
    ///
    /// # Errors
    /// The file and what the system says.
    pub fn packet(&mut self, file: usize, at: Time, headers: &[u8], original: u32) -> Result<(), Failure> {
        let (path, writer) = &mut self.files[file];
        let writer = match writer {
            Some(writer) => writer,
            None => {
                let appender = Appender { path: path.clone(), buffer: Vec::new(), exists: false };
                writer.insert(PcapWriter::new(appender, None).map_err(|error| (path.clone(), error))?)
            }
        };
        writer.packet(at, headers, original).map_err(|error| (path.clone(), error))
    }

    /// Writes what is left and returns the files that were made.
    ///
    /// # Errors
    /// The file and what the system says.
    pub fn finish(&mut self) -> Result<Vec<PathBuf>, Failure> {
        let mut made = Vec::new();
        for (path, writer) in &mut self.files {
            if let Some(writer) = writer.take() {
                writer.finish().map_err(|error| (path.clone(), error))?;
                made.push(path.clone());
            }
        }
        made.sort();
        Ok(made)
    }
}

/// Appends to a file that is open only for that.
struct Appender {
    path: PathBuf,
    buffer: Vec<u8>,
    /// This run has made it.
    exists: bool,
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        if self.exists {
            options.append(true);
        } else {
            options.write(true).create(true).truncate(true);
        }
        options.open(&self.path)?.write_all(&self.buffer)?;
        self.exists = true;
        self.buffer.clear();
        Ok(())
    }
}
