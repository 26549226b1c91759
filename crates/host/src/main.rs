//! `fanin-host`: applies, shows and takes back TCP settings of one Linux host, and measures it. It needs no other program there.
//!
//! One command, one JSON object on standard output, or one sentence on standard error and exit code 2.
//!
//! | file | what it does |
//! |---|---|
//! | `command.rs` | the command line |
//! | `host.rs` | the changes, their undo, what is changed now |
//! | `plan.rs` | the plan that `fanin compare --plan` writes |
//! | `trial.rs` | a change for a while, guarded |
//! | `state.rs` | what was there before, kept on disk before a change is made |
//! | `twins/` | congestion controls by BPF |
//! | `capture.rs`, `pseudonyms.rs` | headers of packets into a file |
//! | `measure.rs`, `device.rs` | what the host costs, and how its network card is set |
//! | `netlink.rs`, `routes.rs`, `options.rs`, `sockets.rs`, `sysctl.rs` | routes, their options, connections, sysctls |

mod capture;
mod command;
mod device;
mod error;
mod host;
mod interrupt;
mod measure;
mod netlink;
mod options;
mod plan;
mod pseudonyms;
mod routes;
mod sockets;
mod state;
mod sysctl;
mod trial;
mod twins;

use error::Error;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// After Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let told = command::run(lexopt::Parser::from_env()).and_then(|answer| {
        tell(&answer)?;
        Ok(answer.get("interrupted").is_some_and(|said| said == true))
    });
    match told {
        Ok(is_interrupted) => ExitCode::from(if is_interrupted { INTERRUPTED } else { 0 }),
        Err(error) => {
            note(&format!("fanin-host: {}", error.shown()));
            ExitCode::from(2)
        }
    }
}

/// Writes a line to standard output. Who has closed it wants no more of it; that it cannot take the line is an error.
fn tell(line: &dyn Display) -> Result<(), Error> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => Err(Error::File { path: "standard output".to_owned(), why }),
        _ => Ok(()),
    }
}

/// Writes a line to standard error, if it takes it: a change is taken back whether it does or not.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
