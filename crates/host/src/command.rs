//! The command line.

use crate::capture::{self, Capture};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::pseudonyms::Pseudonyms;
use crate::routes::Routes;
use crate::state::FOLDER;
use crate::trial::{self, Trial};
use crate::twins::{self, kernel};
use crate::{device, host, measure, options, plan};
use lexopt::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const USAGE: &str = "\
usage: fanin-host [--state FOLDER] COMMAND

  check                          what this host allows
  route ADDRESS OPTION VALUE...  options for new connections with a host, as `ip route` takes them: congctl, rto_min, initcwnd, quickack,
                                 initrwnd, window, features; the rest of the route stays
  set NAME=VALUE...              sysctls of the network, such as net.ipv4.tcp_slow_start_after_idle=0
  apply PLAN [--as END]          the part of a plan (fanin compare --plan) for this host; END: servers, aggregator
  load NAME [--device DEVICE] [--param KEY=VALUE]... [--hold]
                                 one of fanin's congestion controls, by BPF; iatcp and ictcp work on a network device
  unload NAME [--device DEVICE], unload --all
  params NAME                    its parameters
  trial ADDRESS [OPTION VALUE]... [--twin NAME] [--param KEY=VALUE]... [--for 10m] [--margin 1.5] [--hold]
                                 a change for a while: taken back at the end, after Ctrl-C or a kill, or when the p99 RTT or the share of
                                 retransmissions reaches the margin times what it was
  status                         what is changed, what it was, what it is, what is loaded
  undo [ADDRESS]                 everything, or the routes to a host, back to what was there before the first change
  measure [FILE] [--device DEVICE]
                                 what this host costs, as a file for `hosts = \"FILE\"` in fanin's rack files
  capture FILE [--device DEVICE | --host ADDRESS] [--for 60s] [--bytes 100MB] [--last] [--hash | --key WORDS]
                                 headers of TCP packets, without payload; --last: the last bytes and not the first; --hash: addresses
                                 are replaced, --key: by the same ones on every host with the same words

--hold: until standard input ends. What was there is kept in /run/fanin-host, once for each network namespace, before it is changed. `undo`
works after a kill at any moment.";

/// What the command line says.
struct Asked {
    words: Vec<String>,
    folder: PathBuf,
    end: Option<String>,
    device: Option<String>,
    host: Option<IpAddr>,
    params: Vec<(String, u32)>,
    twin: Option<String>,
    limit: Option<Duration>,
    margin: f64,
    bytes: u64,
    key: Option<String>,
    is_held: bool,
    is_all: bool,
    is_last: bool,
    is_hashed: bool,
}

/// Does what the command line says.
pub fn run(mut parser: lexopt::Parser) -> Result<Value, Error> {
    let mut asked = Asked {
        words: Vec::new(),
        folder: std::env::var_os("FANIN_STATE").map_or_else(|| FOLDER.into(), PathBuf::from),
        end: None,
        device: None,
        host: None,
        params: Vec::new(),
        twin: None,
        limit: None,
        margin: 1.5,
        bytes: 100_000_000,
        key: None,
        is_held: false,
        is_all: false,
        is_last: false,
        is_hashed: false,
    };
    let mut given = BTreeSet::new();
    while let Some(argument) = parser.next().map_err(wrong)? {
        if let Long(name) = &argument
            && *name != "param"
        {
            once(&mut given, format!("--{name}"))?;
        }
        match argument {
            Long("state") => asked.folder = text(&mut parser)?.into(),
            Long("as") => asked.end = Some(text(&mut parser)?),
            Long("device") => asked.device = Some(text(&mut parser)?),
            Long("host") => asked.host = Some(ip(&text(&mut parser)?)?),
            Long("param") => asked.params.push(twins::setting(&text(&mut parser)?)?),
            Long("twin") => asked.twin = Some(text(&mut parser)?),
            Long("for") => asked.limit = Some(time(&text(&mut parser)?)?),
            Long("margin") => asked.margin = margin(&text(&mut parser)?)?,
            Long("bytes") => asked.bytes = size(&text(&mut parser)?)?,
            Long("key") => asked.key = Some(text(&mut parser)?),
            Long("hold") => asked.is_held = true,
            Long("all") => asked.is_all = true,
            Long("last") => asked.is_last = true,
            Long("hash") => asked.is_hashed = true,
            Long("version") => return Ok(json!(concat!("fanin-host ", env!("CARGO_PKG_VERSION")))),
            Long("help") | Short('h') => {
                crate::tell(&USAGE)?;
                std::process::exit(0);
            }
            Value(word) => asked.words.push(word.string().map_err(wrong)?),
            other => return Err(wrong(other.unexpected())),
        }
    }
    command(asked)
}

/// Refuses what is given twice, since either may be meant.
fn once(given: &mut BTreeSet<String>, name: String) -> Result<(), Error> {
    match given.replace(name) {
        Some(name) => Err(Error::Usage(format!("`{name}` is given twice; give it once"))),
        None => Ok(()),
    }
}

fn all_once<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let mut given = BTreeSet::new();
    names.into_iter().try_for_each(|name| once(&mut given, name.to_owned()))
}

fn wrong(error: lexopt::Error) -> Error {
    Error::Usage(format!("{error}; `fanin-host --help` shows all"))
}

/// The value of an option.
fn text(parser: &mut lexopt::Parser) -> Result<String, Error> {
    parser.value().and_then(|v| v.string()).map_err(wrong)
}

fn command(asked: Asked) -> Result<Value, Error> {
    all_once(asked.params.iter().map(|(key, _)| key.as_str()))?;
    let words: Vec<&str> = asked.words.iter().map(String::as_str).collect();
    let folder = asked.folder.as_path();
    match words.as_slice() {
        ["check"] => Ok(kernel::check()),
        ["route", address, options @ ..] if !options.is_empty() && options.len() % 2 == 0 => {
            let mut state = host::open(folder)?;
            host::route(&mut state, ip(address)?, &pairs(options)?)?;
            host::status(&state)
        }
        ["set", settings @ ..] if !settings.is_empty() => {
            let pairs = settings.iter().map(|one| one.split_once('=').ok_or_else(|| no_pair(one)));
            let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
            all_once(pairs.iter().map(|(name, _)| *name))?;
            let mut state = host::open(folder)?;
            for (name, value) in pairs {
                host::set(&mut state, name, value)?;
            }
            host::status(&state)
        }
        ["apply", file] => apply(folder, file.as_ref(), asked.end.as_deref()),
        ["load", name] if asked.is_held => Ok(twins::load_and_wait(name, asked.device.as_deref(), &asked.params)?),
        ["load", name] => host::load(&mut host::open(folder)?, name, asked.device.as_deref(), &asked.params),
        ["unload"] if asked.is_all => host::unload(&mut host::open(folder)?, None, None),
        ["unload", name] => host::unload(&mut host::open(folder)?, Some(name), asked.device.as_deref()),
        ["params", name] => Ok(twins::parameters(name)?),
        ["trial", address, options @ ..] if options.len() % 2 == 0 => {
            let trial = Trial {
                host: ip(address)?,
                options: pairs(options)?,
                twin: asked.twin,
                params: asked.params,
                limit: asked.limit.unwrap_or(Duration::from_secs(600)),
                margin: asked.margin,
            };
            if trial.options.is_empty() && trial.twin.is_none() {
                return Err(Error::Usage("a trial takes options of the route, or --twin NAME".to_owned()));
            }
            options::with(Vec::new(), &trial.options)?;
            trial::run(folder, &trial, &Interrupt::noted(asked.is_held)?)
        }
        ["guard", process] => trial::guard(folder, process.parse().map_err(|_| no_process(process))?),
        ["status"] => {
            let mut told = host::status(&host::open(folder)?)?;
            let (loaded, receivers) = twins::status();
            (told["loaded"], told["receivers"]) = (loaded, receivers);
            Ok(told)
        }
        ["undo"] => host::undo(&mut host::open(folder)?),
        ["undo", address] => Ok(json!({ "undone": host::undo_route(&mut host::open(folder)?, ip(address)?)? })),
        ["measure", file @ ..] if file.len() < 2 => measured(file.first().map(Path::new), asked.device),
        ["capture", file] => captured(file.as_ref(), &asked),
        [] => Err(Error::Usage(USAGE.to_owned())),
        [word, ..] => {
            Err(Error::Usage(format!("`{word}`: no command, or one of other words; `fanin-host --help` shows all")))
        }
    }
}

fn captured(file: &Path, asked: &Asked) -> Result<Value, Error> {
    let name = captured_device(asked)?;
    let pseudonyms = match (&asked.key, asked.is_hashed) {
        (None, false) => None,
        (key, _) => Some(Pseudonyms::new(key.as_deref()).map_err(Error::file("/dev/urandom".as_ref()))?),
    };
    let capture = Capture {
        file,
        device: device::number(&name)?,
        is_loopback: name == "lo",
        limit: asked.limit.unwrap_or(Duration::from_secs(60)),
        bytes: asked.bytes,
        last: asked.is_last,
        pseudonyms,
    };
    capture::run(capture, &Interrupt::noted(asked.is_held)?)
}

fn apply(folder: &Path, file: &Path, end: Option<&str>) -> Result<Value, Error> {
    let part = plan::part(file, end, own_addresses())?;
    let mut state = host::open(folder)?;
    host::apply(&mut state, &part)?;
    host::status(&state)
}

fn measured(file: Option<&Path>, device: Option<String>) -> Result<Value, Error> {
    let device = match device {
        Some(name) => Some(name),
        None => default_device(IpAddr::from([1, 1, 1, 1])),
    };
    let all = measure::all(device.as_deref())?;
    if let Some(file) = file {
        std::fs::write(file, measure::written(&all)).map_err(Error::file(file))?;
    }
    let told: serde_json::Map<String, Value> = all
        .into_iter()
        .map(|one| (one.key.to_owned(), json!({ "value": one.value.trim_matches('"'), "how": one.how })))
        .collect();
    Ok(json!({ "device": device, "hosts": told, "file": file }))
}

/// The device by which packets to a host leave.
fn default_device(to: IpAddr) -> Option<String> {
    let used = Routes::open().ok()?.used(to).ok()?;
    device::name(used.device()?)
}

fn captured_device(asked: &Asked) -> Result<String, Error> {
    let found = match (&asked.device, asked.host) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(host)) => default_device(host),
        (None, None) => default_device(IpAddr::from([1, 1, 1, 1])),
    };
    found.ok_or_else(|| Error::Usage("no route says which network device; name it: --device eth0".to_owned()))
}

fn pairs(words: &[&str]) -> Result<Vec<(String, String)>, Error> {
    all_once(words.iter().step_by(2).copied())?;
    Ok(words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect())
}

fn ip(text: &str) -> Result<IpAddr, Error> {
    text.parse().map_err(|_| Error::Usage(format!("`{text}` is no IP address")))
}

/// `90s`, `10m`, `1h`.
fn time(text: &str) -> Result<Duration, Error> {
    let wrong = || Error::Usage(format!("--for {text}: a time is a number with s, m or h, as 90s or 10m"));
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// `500KB`, `100MB`, `2GB`.
fn size(text: &str) -> Result<u64, Error> {
    let wrong = || Error::Usage(format!("--bytes {text}: a size is a number with KB, MB or GB, as 100MB"));
    let units = [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
    let found = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = found.ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(bytes).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

fn margin(text: &str) -> Result<f64, Error> {
    let wrong = || Error::Usage(format!("--margin {text}: it must be a number above 1, as 1.5"));
    text.parse().ok().filter(|margin: &f64| *margin > 1.0 && margin.is_finite()).ok_or_else(wrong)
}

fn no_pair(text: &str) -> Error {
    Error::Usage(format!("`{text}`: it must be NAME=VALUE, such as net.ipv4.tcp_ecn=1"))
}

fn no_process(text: &str) -> Error {
    Error::Usage(format!("`{text}` is no number of a process"))
}

/// Addresses of this host: the kernel binds a socket to no other.
fn own_addresses() -> impl Fn(&IpAddr) -> bool {
    |address: &IpAddr| std::net::UdpSocket::bind((*address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_numbers_with_units() {
        assert_eq!(time("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(time("1.5m").unwrap(), Duration::from_secs(90));
        assert_eq!(size("100MB").unwrap(), 100_000_000);
        for wrong in ["", "s", "90", "-3s", "1e99h", "90é"] {
            assert!(time(wrong).unwrap_err().to_string().contains("a number with s, m or h"), "{wrong}");
        }
        for wrong in ["0MB", "3", "99999999999999GB"] {
            assert!(size(wrong).unwrap_err().to_string().contains("a size is a number"), "{wrong}");
        }
        assert!(margin("1").is_err() && margin("inf").is_err() && margin("2").is_ok());
    }
}
