//! Captures for Python.

use crate::columns::{Table, f64s, optional_u64s, texts, u8s, u32s, u64s};
use crate::error::{Class, capture_error, internal, raise, workload_error};
use crate::memory::give_back;
use crate::simulate::Rack;
use crate::watch::Watch;
use fanin_capture::{Connection, DirectionStats, Gap, Kept, Options, Place, ReplayConnection, Round, Workload};
use fanin_units::Duration;
use pyo3::prelude::*;
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fs::File;
use std::net::IpAddr;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was found in one capture.
#[pyclass(frozen, module = "fanin._native")]
pub struct Capture(Kept, Gap);

/// Connections from which the memory of a pass is given back to the system when it is over.
const MANY: usize = 32_768;

/// Reads a capture.
///
/// `gap` is the time without data that ends a train, such as `1ms`; without it the connection's smoothed round trip does, never below
/// `floor`. `rack` is the rack that it was taken on, where that is known. Rows of [`MANY`] connections lie in files without a name in the folder
/// `aside`, where the disk has room: of a million connections they take 0.4 GB.
#[pyfunction]
#[pyo3(signature = (path, gap=None, floor=None, rack=None, watch=None, aside=None))]
pub fn analyse(
    py: Python<'_>,
    path: PathBuf,
    gap: Option<&str>,
    floor: Option<&str>,
    rack: Option<&Rack>,
    watch: Option<Watch>,
    aside: Option<PathBuf>,
) -> PyResult<Capture> {
    let time = |option: &str, text: &str, zero: bool| {
        text.parse::<Duration>()
            .map_err(|error| error.to_string())
            .and_then(|d| if d.is_zero() && !zero { Err("it must be longer than zero".to_owned()) } else { Ok(d) })
            .map_err(|why| raise(py, Class::Scenario, format!("command line `{option} {text}`: {why}")))
    };
    let gap = match (gap, floor) {
        (None, None) => Gap::default(),
        (Some(gap), None) => Gap::Fixed(time("--gap", gap, false)?),
        (None, Some(floor)) => Gap::SmoothedRtt { floor: time("--floor", floor, true)? },
        (Some(_), Some(floor)) => {
            let why = "--gap sets the threshold itself, so there is nothing to floor; give one of the two";
            return Err(raise(py, Class::Scenario, format!("command line `--floor {floor}`: {why}")));
        }
    };
    let links = rack.map(|rack| rack.links(py)).transpose()?;
    let watch = watch.unwrap_or_default();
    py.detach(|| {
        fanin_capture::analyse(&path, &Options { gap, links }, &mut |progress| {
            let total = progress.bytes_total.filter(|&t| t > 0);
            watch.report(total.map_or(0.0, |t| progress.bytes_read as f64 / t as f64))
        })
        .map(Kept::new)
    })
    .map(|mut found| {
        if found.analysis().connections.len() >= MANY {
            if let Some(folder) = aside {
                // Where it cannot be they stay in memory.
                let _ = py.detach(|| found.put_aside(|| unnamed(&folder)));
            }
            // What connections took that rested: twice what is left of them.
            give_back(py);
        }
        Capture(found, gap)
    })
    .map_err(|error| capture_error(py, &error))
}

/// A file that no folder names: nothing is left of it however the process ends.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(folder)?;
    File::options().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> std::io::Result<File> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[pymethods]
impl Capture {
    /// What ended a train, in words.
    #[getter]
    fn gap(&self) -> String {
        match self.1 {
            Gap::Fixed(gap) => gap.to_string(),
            Gap::SmoothedRtt { floor } => format!("smoothed round trip of each connection, at least {floor}"),
        }
    }
    /// Counts over the file, as JSON.
    fn summary_json(&self) -> PyResult<String> {
        json(&self.0.analysis().summary)
    }
    /// TCP connections of these numbers, an object each, as JSON.
    fn connections_json(&self, begin: usize, end: usize) -> PyResult<String> {
        let all = &self.0.analysis().connections;
        json(&(begin..end.min(all.len())).filter_map(|number| all.get(number)).collect::<Vec<_>>())
    }
    /// The connections with the most payload, so many of them, in order of their number, as JSON.
    fn heaviest_json(&self, most: usize) -> PyResult<String> {
        let payload = |c: &Connection| Reverse(c.to_client.payload_bytes + c.to_server.payload_bytes);
        let mut numbers: Vec<_> = self.0.analysis().connections.iter().map(|c| (payload(&c), c.connection)).collect();
        numbers.sort_unstable();
        numbers.truncate(most);
        numbers.sort_unstable_by_key(|&(_, number)| number);
        let heaviest: Vec<_> =
            numbers.iter().filter_map(|&(_, n)| self.0.analysis().connections.get(n as usize)).collect();
        json(&heaviest)
    }

    /// The connections of one host, with what went towards it: `asks` where it opened them, so that responses do.
    fn towards(&self, py: Python<'_>, host: &str) -> PyResult<Table> {
        let ip = address(py, host)?;
        let mine = self.0.analysis().connections.iter().filter(|c| c.client_ip == ip || c.server_ip == ip);
        let mut numbers = Vec::new();
        let mut flags = [const { Vec::new() }; 2];
        let mut times = [const { Vec::new() }; 2];
        let mut counts = [const { Vec::new() }; TOWARDS.len()];
        for c in mine {
            let side = if c.client_ip == ip { &c.to_client } else { &c.to_server };
            numbers.push(c.connection);
            flags
                .iter_mut()
                .zip([c.client_ip == ip, c.handshake_seen])
                .for_each(|(all, flag)| all.push(u8::from(flag)));
            times.iter_mut().zip([c.handshake_rtt_ns, side.min_rtt_ns]).for_each(|(all, time)| all.push(time));
            counts.iter_mut().zip(TOWARDS).for_each(|(all, (_, of))| all.push(of(&c, side)));
        }
        let [asks, seen] = flags.map(u8s);
        let [handshake, shortest] = times.map(optional_u64s);
        let mut columns = vec![
            ("connection", u32s(numbers)),
            ("asks", asks),
            ("handshake_seen", seen),
            ("handshake_rtt_ns", handshake),
            ("min_rtt_ns", shortest),
        ];
        columns.extend(TOWARDS.iter().zip(counts).map(|(&(name, _), all)| (name, u64s(all))));
        Table::new(columns)
    }
    /// Hosts, the likeliest aggregator first, as JSON.
    fn hosts_json(&self) -> PyResult<String> {
        json(&self.0.analysis().hosts)
    }
    /// What the spacing of packets says about the link to each receiver, as JSON.
    fn links_json(&self) -> PyResult<String> {
        json(&self.0.analysis().links)
    }
    /// What losses say of the limit of the queue to a receiver whose link has this rate, bit/s, as JSON; `null` where there are too few.
    fn limit_json(&self, py: Python<'_>, receiver: &str, bps: f64) -> PyResult<String> {
        let ip = address(py, receiver)?;
        let link = self.0.analysis().links.iter().find(|link| link.receiver == ip);
        json(&py.detach(|| link.and_then(|link| link.limit(bps as u64))))
    }
    /// How long first packets of answers to a receiver waited before the tap, by their senders' time stamps, as JSON; `null` where too few tell.
    fn queued_json(&self, py: Python<'_>, receiver: &str) -> PyResult<String> {
        let ip = address(py, receiver)?;
        json(&py.detach(|| self.0.queued_before(ip)))
    }
    /// Whether the capture is fit to judge by, as JSON.
    fn fitness_json(&self) -> PyResult<String> {
        json(&self.0.analysis().fitness)
    }

    /// What a reader of the numbers should know, as JSON.
    fn warnings_json(&self) -> PyResult<String> {
        json(&self.0.analysis().warnings)
    }
    /// Where a damaged file ends, as JSON; `null` for a whole one.
    fn partial_json(&self) -> PyResult<String> {
        json(&self.0.analysis().partial)
    }

    /// One row per packet train.
    fn trains(&self) -> PyResult<Table> {
        let rows = self.0.trains();
        Table::new(vec![
            ("connection", u32s(rows.iter().map(|t| t.connection))),
            ("direction", texts(rows.iter().map(|t| t.direction.name()))),
            ("start_ns", u64s(rows.iter().map(|t| t.start_ns))),
            ("end_ns", u64s(rows.iter().map(|t| t.end_ns))),
            ("packets", u64s(rows.iter().map(|t| t.packets))),
            ("bytes", u64s(rows.iter().map(|t| t.bytes))),
            ("retransmitted_bytes", u64s(rows.iter().map(|t| t.retransmitted_bytes))),
            ("gap_before_ns", optional_u64s(rows.iter().map(|t| t.gap_before_ns))),
            ("threshold_ns", u64s(rows.iter().map(|t| t.threshold_ns))),
            ("turn", u32s(rows.iter().map(|t| t.turn))),
            ("turns", u32s(rows.iter().map(|t| t.turns))),
        ])
    }

    /// One row per request and its response.
    fn turns(&self) -> PyResult<Table> {
        let rows = self.0.turns();
        Table::new(vec![
            ("connection", u32s(rows.iter().map(|t| t.connection))),
            ("turn", u32s(rows.iter().map(|t| t.turn))),
            ("request_start_ns", optional_u64s(rows.iter().map(|t| t.request_start_ns))),
            ("request_end_ns", optional_u64s(rows.iter().map(|t| t.request_end_ns))),
            ("request_bytes", u64s(rows.iter().map(|t| t.request_bytes))),
            ("response_start_ns", optional_u64s(rows.iter().map(|t| t.response_start_ns))),
            ("response_end_ns", optional_u64s(rows.iter().map(|t| t.response_end_ns))),
            ("response_bytes", u64s(rows.iter().map(|t| t.response_bytes))),
            ("missing_bytes", u64s(rows.iter().map(|t| t.missing_bytes))),
            ("retransmitted_bytes", u64s(rows.iter().map(|t| t.retransmitted_bytes))),
            ("think_ns", optional_u64s(rows.iter().map(|t| t.think_ns))),
            ("service_ns", optional_u64s(rows.iter().map(|t| t.service_ns))),
        ])
    }

    /// The traffic towards one aggregator, ready to be replayed.
    #[pyo3(signature = (aggregator=None))]
    fn workload(&self, py: Python<'_>, aggregator: Option<&str>) -> PyResult<Replay> {
        let ip = aggregator.map(|text| address(py, text)).transpose()?;
        // Of many connections it takes long: other threads go on meanwhile, and Ctrl-C is answered.
        py.detach(|| self.0.workload(ip).map(|workload| Replay::new(Arc::new(workload), false, false)))
            .map_err(|error| workload_error(py, &error))
    }

    /// Whether the tap is between the queue and this host; None where the capture does not show it.
    fn behind_the_queue(&self, py: Python<'_>, aggregator: &str) -> PyResult<Option<bool>> {
        Ok(self.0.analysis().behind_the_queue(address(py, aggregator)?))
    }
}

/// A count of a connection, and of its direction towards the host in question.
type Count = fn(&Connection, &DirectionStats) -> u64;

/// Counts of [`Capture::towards`] by name.
const TOWARDS: [(&str, Count); 20] = [
    ("repeated_syns", |c, _| repeats(c.to_server.syn) + repeats(c.to_client.syn)),
    ("repaired_packets", |_, side| side.retransmitted_packets + side.refilled_packets),
    ("refilled_packets", |_, side| side.refilled_packets),
    ("spurious_packets", |_, side| side.spurious_packets),
    ("overtaken_packets", |_, side| side.overtaken_packets),
    ("ce_packets", |_, side| side.ce_packets),
    ("ece_packets", |c, _| c.to_server.ece_packets + c.to_client.ece_packets),
    ("largest_segment", |_, side| side.largest_segment.into()),
    ("mss_of_client", |c, _| c.to_server.mss_option.unwrap_or(0).into()),
    ("mss_of_server", |c, _| c.to_client.mss_option.unwrap_or(0).into()),
    ("both_sack", |c, _| u64::from(c.to_server.sack_option && c.to_client.sack_option)),
    ("both_stamp", |c, _| u64::from(c.to_server.timestamps_option && c.to_client.timestamps_option)),
    ("both_scale", |c, _| u64::from(c.to_server.window_scale.is_some() && c.to_client.window_scale.is_some())),
    ("ect_syn", |_, side| u64::from(side.ect_syn)),
    ("releases", |_, side| side.releases),
    ("prompted_releases", |_, side| side.prompted_releases),
    ("unprompted_releases", |_, side| side.unprompted_releases),
    ("backoffs", |_, side| side.backoffs),
    ("backoffs_over_half", |_, side| side.backoffs_over_half),
    ("backoffs_small", |_, side| side.backoffs_small),
];

/// SYNs, or SYN/ACKs, that were sent again.
fn repeats(syns: u32) -> u64 {
    u64::from(syns.saturating_sub(1))
}

fn address(py: Python<'_>, text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| {
        let why = format!("command line `--aggregator {text}`: not an IP address; give one such as 10.0.0.1");
        raise(py, Class::Capture, why)
    })
}

/// Traffic to be replayed.
#[pyclass(frozen, module = "fanin._native")]
pub struct Replay {
    workload: Arc<Workload>,
    /// Every connection is for itself.
    alone: bool,
    /// The servers' times are those of [`Workload::otherwise`]: to hold all else twice takes 0.3 GB of a million connections.
    otherwise: bool,
    /// The same, as the simulator takes it; of [`MANY`] connections it is made when a plan is.
    kept: Option<fanin_scenario::Replay>,
}

impl Replay {
    fn new(workload: Arc<Workload>, alone: bool, otherwise: bool) -> Replay {
        let mut replay = Replay { workload, alone, otherwise, kept: None };
        if !replay.is_large() {
            replay.kept = Some(replay.for_the_simulator());
        }
        replay
    }

    /// Of so many connections that their memory is given back as soon as it is free.
    pub(crate) fn is_large(&self) -> bool {
        self.workload.connections.len() >= MANY
    }

    /// As the simulator takes it.
    pub(crate) fn traffic(&self) -> Cow<'_, fanin_scenario::Replay> {
        self.kept.as_ref().map_or_else(|| Cow::Owned(self.for_the_simulator()), Cow::Borrowed)
    }

    fn for_the_simulator(&self) -> fanin_scenario::Replay {
        let mut traffic = fanin_scenario::Replay::from(&*self.workload);
        if self.otherwise {
            traffic = traffic.otherwise(&self.workload);
        }
        if self.alone { traffic.independent() } else { traffic }
    }

    /// With the servers' times that it has.
    fn with_its_times(&self) -> Cow<'_, Workload> {
        let other = if self.otherwise { self.workload.otherwise() } else { None };
        other.map_or(Cow::Borrowed(&self.workload), Cow::Owned)
    }

    /// Requests that left together; none where every connection is for itself.
    fn rounds_in_use(&self) -> impl Iterator<Item = &Round> {
        let all = if self.alone { &[][..] } else { &self.workload.rounds };
        all.iter().filter(|round| !round.is_gate())
    }
}

#[pymethods]
impl Replay {
    /// Reads the text of a workload file (JSON).
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Replay> {
        let workload = Workload::parse(text, Path::new("traffic")).map_err(|error| workload_error(py, &error))?;
        Ok(Replay::new(Arc::new(workload), false, false))
    }
    /// Connections that carried payload.
    #[getter]
    fn connections(&self) -> usize {
        self.workload.connections.len()
    }
    /// Who receives.
    #[getter]
    fn aggregator(&self) -> String {
        self.workload.aggregator.to_string()
    }
    /// Who sends.
    #[getter]
    fn servers(&self) -> Vec<String> {
        self.workload.servers.iter().map(IpAddr::to_string).collect()
    }
    /// Responses with payload, of all connections.
    #[getter]
    fn responses(&self) -> usize {
        self.workload.connections.iter().flat_map(|c| &c.messages).filter(|m| m.response_bytes > 0).count()
    }
    /// Rounds: requests that left together.
    #[getter]
    fn rounds(&self) -> usize {
        self.rounds_in_use().count()
    }
    /// Responses that rounds wait for.
    #[getter]
    fn in_rounds(&self) -> usize {
        self.rounds_in_use().map(|r| r.answers().len()).sum()
    }
    /// What each round took in the capture, from the first request to the slowest answer; none where an answer is not in it.
    fn round_times_ms(&self) -> Vec<Option<f64>> {
        self.rounds_in_use().map(|r| r.took_ns.map(|ns| ns as f64 / 1e6)).collect()
    }
    /// Stages of requests: what left together within one.
    #[getter]
    fn stages(&self) -> usize {
        self.traffic().stages.len()
    }
    /// What each stage took in the capture, from its first message to its slowest answer; none where an answer is not in it.
    fn stage_times_ms(&self) -> Vec<Option<f64>> {
        let took = |messages: &[Place]| {
            let each = || messages.iter().filter_map(|&place| self.workload.message(place));
            let begin = each().map(|m| m.start_ns).min()?;
            let ends: Option<Vec<u64>> = each().map(|m| m.start_ns.checked_add(m.took_ns?)).collect();
            Some(ends?.into_iter().max()?.saturating_sub(begin) as f64 / 1e6)
        };
        self.traffic().stages.iter().map(|(_, messages)| took(messages)).collect()
    }
    /// Every message of every request, in order of request and stage: who was asked for how much, when, and when the answer had come or was given
    /// up (from the start of the capture; null where neither is in it). `begin_ns` and `took_ns` are the request's: of one that waits for some of
    /// its answers, until these had come.
    fn request_messages(&self) -> PyResult<Table> {
        let requests = self.workload.requests();
        let numbered = || (0_u32..).zip(&requests);
        let rows: Vec<(u32, u32, u32, Place)> = numbered()
            .flat_map(|(n, request)| {
                let stages = (0_u32..).zip(&request.stages);
                stages.flat_map(move |(s, stage)| stage.iter().map(move |&place| (n, request.company, s, place)))
            })
            .collect();
        let of = |request: u32| &requests[request as usize];
        let connection = |place: Place| self.workload.connections.get(place.0 as usize);
        let message = |place: Place| self.workload.message(place);
        let server = |place: Place| connection(place).and_then(|c| self.workload.servers.get(c.server as usize));
        let server = |place: Place| server(place).map_or_else(String::new, IpAddr::to_string);
        Table::new(vec![
            ("request", u32s(rows.iter().map(|r| r.0))),
            ("group", u32s(rows.iter().map(|r| r.1))),
            ("begin_ns", u64s(rows.iter().map(|r| of(r.0).begin_ns))),
            ("took_ns", optional_u64s(rows.iter().map(|r| of(r.0).took_ns))),
            ("stage", u32s(rows.iter().map(|r| r.2))),
            ("position", u32s(rows.iter().map(|r| r.3.0))),
            ("connection", u32s(rows.iter().map(|r| connection(r.3).map_or(0, |c| c.connection)))),
            ("turn", u32s(rows.iter().map(|r| r.3.1))),
            ("server", texts(rows.iter().map(|r| server(r.3)))),
            ("asked_ns", u64s(rows.iter().map(|r| message(r.3).map_or(0, |m| m.start_ns)))),
            (
                "answered_ns",
                optional_u64s(rows.iter().map(|r| message(r.3).and_then(|m| m.start_ns.checked_add(m.took_ns?)))),
            ),
            ("request_bytes", u64s(rows.iter().map(|r| message(r.3).map_or(0, |m| m.request_bytes)))),
            ("response_bytes", u64s(rows.iter().map(|r| message(r.3).map_or(0, |m| m.response_bytes)))),
        ])
    }
    /// The answers of each round of requests to several servers, in order of time: a million connections as JSON and Python's objects take gigabytes.
    fn round_answers(&self) -> PyResult<Table> {
        let together = |n: u32| self.workload.companies.get(n as usize).is_some_and(|company| company.rounds > 0);
        let start = |&place: &Place| self.workload.message(place).map_or(0, |m| m.start_ns);
        let told = |&(c, m): &Place| (self.workload.connections.get(c as usize).map_or(0, |c| c.connection), m);
        let rounds = self.workload.rounds.iter().filter(|round| !round.is_gate() && together(round.company));
        let mut rounds: Vec<_> = rounds
            .map(|round| (round.requests.iter().map(start).min(), round.answers().iter().map(told).collect::<Vec<_>>()))
            .collect();
        rounds.sort_unstable();
        let rows = || (0_u32..).zip(&rounds).flat_map(|(n, (_, places))| places.iter().map(move |place| (n, place)));
        Table::new(vec![
            ("round", u32s(rows().map(|(n, _)| n))),
            ("connection", u32s(rows().map(|(_, place)| place.0))),
            ("turn", u32s(rows().map(|(_, place)| place.1))),
        ])
    }
    /// Of each company that is asked in requests of several messages, whether these close, as JSON.
    fn closings_json(&self) -> PyResult<String> {
        json(&self.workload.closings())
    }
    /// Messages to the aggregator that belong to request trees: clients' requests, and the answers that were waited for.
    #[getter]
    fn in_trees(&self) -> usize {
        self.traffic().in_trees()
    }
    /// Answers to clients that waited for others: connection, turn within it, and when it left in the capture.
    fn trees(&self) -> PyResult<Table> {
        let rows: Vec<(u32, u32, u64)> = (self.traffic().waiting_answers().into_iter())
            .filter_map(|(c, m)| {
                let connection = self.workload.connections.get(c as usize)?;
                Some((connection.connection, m, connection.messages.get(m as usize)?.start_ns))
            })
            .collect();
        Table::new(vec![
            ("connection", u32s(rows.iter().map(|r| r.0))),
            ("turn", u32s(rows.iter().map(|r| r.1))),
            ("start_ns", u64s(rows.iter().map(|r| r.2))),
        ])
    }
    /// Per response, by connection and number, the pauses between its pieces that are replayed as the application's.
    fn pauses(&self) -> PyResult<Table> {
        let rows = || {
            self.workload.connections.iter().flat_map(|c| {
                let answered = c.messages.iter().filter(|m| m.response_bytes > 0);
                let paused = answered.map(|m| m.pieces.iter().map(|p| p.pause_ns).sum::<u64>());
                (0..).zip(paused).map(|(number, ns)| (c.connection, number, ns as f64 / 1e6))
            })
        };
        Table::new(vec![
            ("connection", u32s(rows().map(|r| r.0))),
            ("response", u32s(rows().map(|r| r.1))),
            ("pause_ms", f64s(rows().map(|r| r.2))),
        ])
    }
    /// What responses took in the capture, from the server's writing to the last byte at the aggregator, as far as the capture shows it, and by how
    /// much the server's writing is uncertain. Without those in flight with others; the first of a connection are marked.
    fn response_times(&self) -> PyResult<Table> {
        let rows: Vec<(u32, u32, f64, f64)> = (self.with_its_times().connections.iter())
            .flat_map(|c| {
                let answered = c.messages.iter().filter(|m| m.response_bytes > 0);
                (0..).zip(answered).filter(|(_, m)| !m.overlapped && !m.given_up).filter_map(|(number, m)| {
                    let unsure = m.service_between_ns.map_or(0, |(least, most)| most.saturating_sub(least));
                    let took = m.took_ns?.saturating_sub(m.service_ns);
                    Some((c.connection, number, took as f64 / 1e6, unsure as f64 / 1e6))
                })
            })
            .collect();
        Table::new(vec![
            ("connection", u32s(rows.iter().map(|r| r.0))),
            ("response", u32s(rows.iter().map(|r| r.1))),
            ("took_ms", f64s(rows.iter().map(|r| r.2))),
            ("unsure_ms", f64s(rows.iter().map(|r| r.3))),
        ])
    }
    /// Requests in flight with others on their connection that could not be told apart from these.
    #[getter]
    fn untold(&self) -> u64 {
        self.workload.untold
    }
    /// Responses that follow no request of the capture and are not the first of their connection.
    #[getter]
    fn unasked(&self) -> usize {
        // What a client of the aggregator sends is a request, unless it never gets an answer to it.
        let asked = |c: &ReplayConnection| c.messages.iter().rposition(|m| m.request_bytes > 0).filter(|_| c.upstream);
        let unasked = |c: &ReplayConnection| {
            let later = c.messages.iter().skip(asked(c).map_or(1, |place| place + 1));
            later.filter(|m| m.request_bytes == 0 && m.response_bytes > 0).count()
        };
        self.workload.connections.iter().map(unasked).sum()
    }
    /// Writes that follow no request and no pause: each is replayed as a part of the response before it.
    #[getter]
    fn merged(&self) -> u64 {
        let more = |c: &ReplayConnection| u64::from(c.unasked_writes).saturating_sub(c.messages.len() as u64);
        self.workload.connections.iter().map(more).sum()
    }
    /// Who is asked together and what they wait for, as JSON.
    fn groups_json(&self) -> PyResult<String> {
        json(&self.workload.companies)
    }
    /// The same traffic with every connection for itself: no request waits for another connection.
    fn independent(&self) -> Replay {
        Replay::new(self.workload.clone(), true, self.otherwise)
    }
    /// The same traffic with the servers' times that the capture only bounds put elsewhere between these bounds; none where it shows all of them.
    fn otherwise(&self) -> Option<Replay> {
        self.workload.bounds_some().then(|| Replay::new(self.workload.clone(), false, !self.otherwise))
    }
    /// The same traffic with timers that ask though the answer before is missing; none where the capture shows what its timers do, or has none.
    fn unwaiting(&self) -> Option<Replay> {
        let workload = self.workload.unwaiting()?;
        Some(Replay::new(Arc::new(workload), false, self.otherwise))
    }
    /// Writes the workload file, whole or not at all.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.with_its_times().write(&path).map_err(|error| workload_error(py, &error))
    }
    /// The workload file's text (JSON).
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&*self.with_its_times()).map_err(internal)
    }
}

fn json(part: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(part).map_err(internal)
}
