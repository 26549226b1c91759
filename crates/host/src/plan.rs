//! The plan that `fanin compare --plan` writes: what each end is given.

use crate::error::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

/// The form of the file that this program reads.
const FORMAT: u32 = 1;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    format: u32,
    /// What it is for; not read here.
    #[serde(default, rename = "title")]
    _title: String,
    #[serde(default)]
    servers: Option<End>,
    #[serde(default)]
    aggregator: Option<End>,
}

/// What the hosts of one end are given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Their addresses.
    pub hosts: Vec<IpAddr>,
    /// Hosts at the other end.
    #[serde(default)]
    pub peers: Vec<IpAddr>,
    /// A twin that is loaded first, for `congctl` to name.
    #[serde(default)]
    pub twin: Option<String>,
    /// Its parameters.
    #[serde(default)]
    pub params: BTreeMap<String, u32>,
    /// Options of the routes to them, as `ip route` takes them.
    #[serde(default)]
    pub route: BTreeMap<String, String>,
    /// Sysctls by name.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
}

/// Bytes of a plan, at most: it may come through a pipe, and a device has no end.
const MOST: u64 = 16_000_000;

/// The part of a plan for an end that is named, or for the one that has an address of this host.
pub fn part(file: &Path, end: Option<&str>, is_own: impl Fn(&IpAddr) -> bool) -> Result<End, Error> {
    let mut text = String::new();
    let read = File::open(file).and_then(|from| from.take(MOST + 1).read_to_string(&mut text));
    match read.map_err(Error::file(file))? as u64 {
        0..=MOST => parse(&text, file, end, is_own),
        _ => Err(Error::Usage(format!(
            "{}: it is larger than {} MB, which no plan is",
            file.display(),
            MOST / 1_000_000
        ))),
    }
}

/// The same of a plan's text.
pub fn parse(text: &str, file: &Path, end: Option<&str>, is_own: impl Fn(&IpAddr) -> bool) -> Result<End, Error> {
    let wrong = |why: String| Error::Usage(format!("{}: {why}", file.display()));
    let plan: Plan = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        wrong(format!("line {line}: {}", e.message().replace('\n', "; ")))
    })?;
    if plan.format != FORMAT {
        return Err(wrong(format!("format = {}: this fanin-host reads format {FORMAT}", plan.format)));
    }
    let ends = [("servers", plan.servers), ("aggregator", plan.aggregator)].into_iter();
    let mut ends: Vec<(&str, End)> = ends.filter_map(|(name, end)| Some((name, end?))).collect();
    ends.retain(|(name, part)| match end {
        Some(end) => *name == end,
        None => part.hosts.iter().any(&is_own),
    });
    match (ends.pop(), ends.pop(), end) {
        (Some((_, part)), None, _) => Ok(part),
        (Some(_), Some(_), _) => {
            Err(wrong("this host is at both ends; say --as servers or --as aggregator".to_owned()))
        }
        (None, _, Some(end)) => {
            Err(wrong(format!("it has nothing for `{end}`; it may have [servers] and [aggregator]")))
        }
        (None, _, None) => Err(wrong(
            "no address of this host is among its `hosts`; on a host of it, or with --as servers or --as aggregator"
                .to_owned(),
        )),
    }
}
