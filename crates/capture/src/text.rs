//! Text that a scenario names by its path: whoever wrote the scenario chose the path, so it may be anything.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are looked at before the rest is read.
const LOOK: u64 = 4096;

/// Text of a regular file. A pipe would be waited for without end, and a device or a sparse file may have no end.
///
/// # Errors
/// The system's, or that it is no regular file, or no text.
pub fn read_text(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let no_text = || io::Error::other("it is no text (UTF-8)");
    let mut file = open_text(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(LOOK).read_to_end(&mut bytes)?;
    if bytes.contains(&0) {
        return Err(no_text());
    }
    file.read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| no_text())
}

/// Opens a file whose reads never wait, which Ctrl-C would not end: `/proc/kmsg` is a regular file and says nothing until the kernel does.
///
/// # Errors
/// The system's.
pub fn open_text(path: &Path) -> io::Result<File> {
    let mut how = File::options();
    how.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut how, libc::O_NONBLOCK);
    how.open(path)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_a_device_a_folder_and_a_sparse_file_are_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("fanin-text-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (pipe, sparse, text) = (folder.join("pipe"), folder.join("sparse"), folder.join("text"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        std::fs::write(&text, "ä".repeat(10_000)).unwrap();
        let said = |path: &Path| read_text(path).unwrap_err().to_string();
        for path in [&pipe, Path::new("/dev/zero"), &folder] {
            assert_eq!(said(path), "it is no regular file");
        }
        assert_eq!(said(&sparse), "it is no text (UTF-8)");
        assert_eq!(read_text(&text).unwrap().len(), 20_000);
        // No text has a zero among its first 4 KiB.
        let zero_behind = |bytes: usize| std::fs::write(&text, [&vec![b'a'; bytes][..], &[0]].concat()).unwrap();
        zero_behind(4_095);
        assert_eq!(said(&text), "it is no text (UTF-8)");
        zero_behind(4_096);
        assert_eq!(read_text(&text).unwrap().len(), 4_097);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_read_that_would_wait_is_an_error() {
        let pipe = std::env::temp_dir().join(format!("fanin-silent-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writer = File::options().read(true).write(true).open(&pipe).unwrap();
        let read = open_text(&pipe).and_then(|mut file| file.read(&mut [0]));
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(writer);
        std::fs::remove_file(pipe).unwrap();
    }
}
