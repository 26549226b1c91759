//! What can go wrong, in a sentence.

/// One sentence that says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line or a plan is wrong.
    #[error("{0}")]
    Usage(String),
    /// The kernel refuses.
    #[error("{what}: {why}{}", hint(why))]
    Kernel {
        /// What was asked.
        what: String,
        /// Its answer.
        why: std::io::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {why}{}", hint(why))]
    File {
        /// Which.
        path: String,
        /// What the system says.
        why: std::io::Error,
    },
    /// Nothing could be loaded or taken out of the kernel.
    #[error(transparent)]
    Twin(#[from] crate::twins::error::Error),
    /// The saved state is not what this program writes.
    #[error(
        "{path}: not as fanin-host has saved it: {why}; set back by hand what it names (`cat {path}`) or restart the host, then remove the file"
    )]
    State {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

fn hint(why: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{AlreadyExists, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    match why.kind() {
        PermissionDenied if !rustix::process::geteuid().is_root() => "; give the command as root",
        NotFound => "; check the name",
        IsADirectory => "; name a file in it",
        NotADirectory | AlreadyExists => "; name a folder, or one that is not there yet",
        InvalidInput => "; the kernel does not take this value, give another",
        _ => "",
    }
}

/// Characters of a sentence, at most: it may name what a plan has.
const LONGEST: usize = 1_000;

impl Error {
    /// Its sentence on one line of bounded length, without what steers a terminal: a plan is another's text.
    pub fn shown(&self) -> String {
        let told = self.to_string();
        let mut line: String = told.chars().take(LONGEST).map(visible).collect();
        if told.chars().nth(LONGEST).is_some() {
            line.push_str(" ...");
        }
        line
    }

    /// The kernel's answer to what was asked.
    pub fn kernel(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |why| Error::Kernel { what, why }
    }

    /// A file's.
    pub fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.display().to_string();
        move |why| Error::File { path, why }
    }
}

/// A character as it is, or escaped where it controls a terminal or turns the direction of a line.
fn visible(c: char) -> String {
    match c {
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            c.escape_unicode().to_string()
        }
        _ if c.is_control() => c.escape_default().to_string(),
        _ => c.to_string(),
    }
}
