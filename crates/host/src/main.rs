//! `fanin-host`: applies, shows and takes back TCP settings of one Linux host. It needs no other program there.
//!
//! One command, one JSON object on standard output, or one sentence on standard error and exit code 2.
//!
//! | file | what it does |
//! |---|---|
//! | `host.rs` | the changes, their undo, what is changed now |
//! | `plan.rs` | the plan that `fanin compare --plan` writes |
//! | `state.rs` | what was there before, kept on disk before a change is made |
//! | `netlink.rs`, `options.rs`, `sysctl.rs` | routes, their options, sysctls |

mod error;
mod host;
mod netlink;
mod options;
mod plan;
mod state;
mod sysctl;

use error::Error;
use lexopt::prelude::*;
use serde_json::{Value, json};
use state::State;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: fanin-host [--state FOLDER] COMMAND

  check                          what this host allows
  route ADDRESS OPTION VALUE...  options for new connections with a host, as `ip route` takes them: congctl, rto_min, initcwnd, quickack,
                                 initrwnd, window, features; the rest of the route stays
  set NAME=VALUE...              sysctls of the network, such as net.ipv4.tcp_slow_start_after_idle=0
  apply PLAN [--as END]          the part of a plan (fanin compare --plan) for this host; END: servers, aggregator
  status                         what is changed, what it was, what it is
  undo                           everything back to what was there before the first change

What was there is kept in /run/fanin-host, once for each network namespace, before it is changed. `undo` works after a kill at any moment.";

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fanin-host: {error}");
            ExitCode::from(2)
        }
    }
}

/// What the command line says.
#[derive(Default)]
struct Asked {
    words: Vec<String>,
    folder: Option<PathBuf>,
    end: Option<String>,
}

fn run(mut parser: lexopt::Parser) -> Result<Value, Error> {
    let mut asked = Asked::default();
    let wrong = |e: lexopt::Error| Error::Usage(format!("{e}; `fanin-host --help` shows all"));
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Long("state") => asked.folder = Some(parser.value().map_err(wrong)?.into()),
            Long("as") => asked.end = Some(parser.value().and_then(|v| v.string()).map_err(wrong)?),
            Long("version") => return Ok(json!(concat!("fanin-host ", env!("CARGO_PKG_VERSION")))),
            Long("help") | Short('h') => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            Value(word) => asked.words.push(word.string().map_err(wrong)?),
            other => return Err(wrong(other.unexpected())),
        }
    }
    command(&asked)
}

fn command(asked: &Asked) -> Result<Value, Error> {
    let words: Vec<&str> = asked.words.iter().map(String::as_str).collect();
    let state = || State::open(asked.folder.as_deref());
    match words.as_slice() {
        ["check"] => Ok(check()),
        ["route", address, options @ ..] if !options.is_empty() && options.len() % 2 == 0 => {
            let pairs = options.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect::<Vec<_>>();
            let mut state = state()?;
            host::route(&mut state, ip(address)?, &pairs)?;
            host::status(&state)
        }
        ["set", settings @ ..] if !settings.is_empty() => {
            let pairs = settings.iter().map(|one| one.split_once('=').ok_or_else(|| no_pair(one)));
            let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
            let mut state = state()?;
            for (name, value) in pairs {
                host::set(&mut state, name, value)?;
            }
            host::status(&state)
        }
        ["apply", file] => {
            let part = plan::part(file.as_ref(), asked.end.as_deref(), own_addresses())?;
            let options: Vec<(String, String)> = part.route.into_iter().collect();
            // All options are looked at before the first change.
            options::with(Vec::new(), &options)?;
            let mut state = state()?;
            for (name, value) in &part.sysctl {
                host::set(&mut state, name, value)?;
            }
            for peer in part.peers.iter().filter(|_| !options.is_empty()) {
                host::route(&mut state, *peer, &options)?;
            }
            host::status(&state)
        }
        ["status"] => host::status(&state()?),
        ["undo"] => Ok(json!({ "undone": host::undo(&mut state()?)? })),
        [] => Err(Error::Usage(USAGE.to_owned())),
        [word, ..] => {
            Err(Error::Usage(format!("`{word}`: no command, or one of other words; `fanin-host --help` shows all")))
        }
    }
}

fn ip(text: &str) -> Result<IpAddr, Error> {
    text.parse().map_err(|_| Error::Usage(format!("`{text}` is no IP address")))
}

fn no_pair(text: &str) -> Error {
    Error::Usage(format!("`{text}`: it must be NAME=VALUE, such as net.ipv4.tcp_ecn=1"))
}

/// Addresses of this host: the kernel binds a socket to no other.
fn own_addresses() -> impl Fn(&IpAddr) -> bool {
    |address: &IpAddr| std::net::UdpSocket::bind((*address, 0)).is_ok()
}

fn check() -> Value {
    let read = |name: &str| sysctl::read(name).ok();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let words = |name: &str| read(name).map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "kernel": release.trim(),
        "root": rustix::process::geteuid().is_root(),
        "congestion_controls": words("net.ipv4.tcp_available_congestion_control"),
        "default": read("net.ipv4.tcp_congestion_control"),
        "rto_min_delays_acks": release.split(['.', '-']).take(2).filter_map(|n| n.parse::<u32>().ok()).collect::<Vec<_>>() >= vec![6, 7],
    })
}
