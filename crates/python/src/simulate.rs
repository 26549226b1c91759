//! Scenarios and their runs for Python.

use crate::algorithm;
use crate::capture::Replay;
use crate::code;
use crate::columns::{Table, all_milliseconds, between, optional_u32s, texts, u32s, u64s};
use crate::error::{Class, internal, raise, run_error, scenario_error};
use crate::memory::give_back;
use crate::results::Run;
use crate::watch::Watch;
use fanin_capture::LinkRates;
use fanin_scenario::{Override, Record, ReplayedResponse, ReplayedRounds, ReplayedTree, outcome};
use fanin_sim::results::Results;
use fanin_sim::spec::{MessageId, Spec};
use fanin_sim::{Progress, RunError};
use pyo3::prelude::*;
use std::iter::repeat_n;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// A scenario as its user wrote it, with changes on top.
#[pyclass(frozen, module = "fanin._native")]
pub struct Scenario(pub(crate) fanin_scenario::Scenario);

#[pymethods]
impl Scenario {
    /// Reads a TOML file.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Scenario> {
        fanin_scenario::Scenario::from_file(path).map(Scenario).map_err(|e| scenario_error(py, &e))
    }
    /// Reads TOML text; `name` stands for the file in messages, and relative paths start from `folder`.
    #[staticmethod]
    #[pyo3(signature = (text, name, folder=PathBuf::new()))]
    fn from_text(py: Python<'_>, text: &str, name: &str, folder: PathBuf) -> PyResult<Scenario> {
        fanin_scenario::Scenario::from_text(text, name)
            .map(|scenario| Scenario(scenario.in_folder(folder)))
            .map_err(|e| scenario_error(py, &e))
    }
    /// The scenario with another algorithm, another seed, and other values, in this order.
    #[pyo3(signature = (cc=None, seed=None, settings=Vec::new()))]
    fn changed(
        &self,
        py: Python<'_>,
        cc: Option<String>,
        seed: Option<u64>,
        settings: Vec<(String, String)>,
    ) -> PyResult<Scenario> {
        let changes: Vec<Override> = cc
            .map(Override::Cc)
            .into_iter()
            .chain(seed.map(Override::Seed))
            .chain(settings.into_iter().map(|(path, value)| Override::Set { path, value }))
            .collect();
        self.0.clone().with(&changes).map(Scenario).map_err(|e| scenario_error(py, &e))
    }
    /// Its name in messages.
    #[getter]
    fn file(&self) -> &str {
        self.0.file()
    }
    /// One line for reports, if it has one.
    fn title(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.title().map_err(|e| scenario_error(py, &e))
    }
    /// The seeds it asks for.
    fn seeds(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.0.seeds().map_err(|e| scenario_error(py, &e))
    }
    /// Identifies what it says; equal hashes and seeds give equal results.
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        self.0.hash().map_err(|e| scenario_error(py, &e))
    }
    /// Everything resolved for one seed.
    fn plan(&self, py: Python<'_>, seed: u64) -> PyResult<Plan> {
        py.detach(|| self.0.plan_with_notes(seed))
            .map(|(spec, notes)| Plan(spec, notes))
            .map_err(|e| scenario_error(py, &e))
    }
}

/// A warning as Python takes it: kind, the algorithm that it is about, and a sentence.
type Warning = (&'static str, Option<String>, String);

fn warning(of: &fanin_scenario::Warning) -> Warning {
    (of.kind(), of.cc().map(str::to_owned), of.to_string())
}

/// One simulation, checked and ready to run.
#[pyclass(frozen, module = "fanin._native")]
pub struct Plan(pub(crate) Spec, Vec<fanin_scenario::Warning>);

#[pymethods]
impl Plan {
    /// Algorithms in use, in the order of the scenario's transports.
    #[getter]
    fn algorithms(&self) -> Vec<String> {
        self.0.transports.iter().map(|t| t.cc.to_string()).collect()
    }
    /// Names of the output ports, `from->to`, in the order of the scenario's links.
    #[getter]
    fn ports(&self) -> Vec<String> {
        let name = |node: fanin_sim::spec::NodeId| &self.0.nodes[node.index()].name;
        self.0.links.iter().map(|link| format!("{}->{}", name(link.from), name(link.to))).collect()
    }
    /// What is allowed but probably not meant: kind, the algorithm that it is about, and a sentence.
    fn warnings(&self, py: Python<'_>) -> Vec<Warning> {
        py.detach(|| fanin_scenario::warnings(&self.0).iter().chain(&self.1).map(warning).collect())
    }
    /// Identifies the results: two plans of equal identity give equal results on the same engine.
    fn identity(&self, py: Python<'_>) -> String {
        py.detach(|| fanin_scenario::identity(&self.0))
    }
    /// Rate of the slowest path's bottleneck in bit/s; `None` without flows.
    fn slowest_rate(&self, py: Python<'_>) -> Option<u64> {
        let paths = py.detach(|| fanin_sim::known_paths(&self.0)).unwrap_or_default();
        paths.iter().map(|path| path.rate.bps()).min()
    }
    /// Jiffies per second of its hosts (`stack.hz`); `None` where transports differ.
    fn hz(&self) -> Option<u32> {
        let mut all = self.0.transports.iter().map(|t| t.stack.hz);
        let first = all.next()?;
        all.all(|hz| hz == first).then_some(first)
    }
    /// Why it runs on one thread whatever number is asked for; `None` if it can be cut into parts.
    fn why_serial(&self, py: Python<'_>, threads: usize) -> Option<&'static str> {
        py.detach(|| fanin_sim::why_serial(&self.0, threads))
    }
    /// Names of code from files that it uses and that is not loaded into this process.
    fn code(&self) -> Vec<&'static str> {
        code::stand_ins(&self.0)
    }
    /// The same with that code loaded, in a process that may (`admit_code`).
    fn with_code(&self, py: Python<'_>) -> PyResult<Plan> {
        Ok(Plan(code::loaded(py, &self.0)?, self.1.clone()))
    }
    /// Runs it on so many threads, with the same results for any number. Other Python threads go on meanwhile.
    #[pyo3(signature = (watch=None, threads=1))]
    fn run(&self, py: Python<'_>, watch: Option<Watch>, threads: usize) -> PyResult<Run> {
        let watch = watch.unwrap_or_default();
        code::check_runnable(py, &self.0)?;
        // A panic would be a fault of fanin, and must cost one run, not all that are under way on other threads.
        algorithm::forget_failure();
        let results = py
            .detach(|| catch_unwind(AssertUnwindSafe(|| simulate(&self.0, threads, &watch))))
            .map_err(|_| internal("the engine gave up on this run; please report it with the message above"))?;
        algorithm::check_failure(py)?;
        results.map(|results| Run::new(results, self.0.trace.classes.clone())).map_err(|error| run_error(py, &error))
    }
}

fn simulate(spec: &Spec, threads: usize, watch: &Watch) -> Result<Results, RunError> {
    fanin_sim::run_on(spec, threads, &mut |progress| go_on(watch, &progress))
}

/// Notes how far a run is; it ends early on request or when an algorithm in Python has raised.
pub(crate) fn go_on(watch: &Watch, progress: &Progress) -> ControlFlow<()> {
    if algorithm::has_failed() { ControlFlow::Break(()) } else { watch.report(share(progress)) }
}

/// How much of a run is done: by time, or by messages where that is further (the run may stop with the last one).
fn share(progress: &Progress) -> f64 {
    let of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    of(progress.now.ps(), progress.end.ps()).max(of(progress.messages.0, progress.messages.1))
}

/// A rack to replay captures on.
#[pyclass(frozen, module = "fanin._native")]
pub struct Rack(fanin_scenario::Rack);

impl Rack {
    /// The rates of its links.
    pub fn links(&self, py: Python<'_>) -> PyResult<LinkRates> {
        let (servers, aggregator) = self.0.rates().map_err(|e| scenario_error(py, &e))?;
        Ok(LinkRates { servers, aggregator })
    }
}

#[pymethods]
impl Rack {
    /// Reads a TOML file, with changes on top.
    #[staticmethod]
    #[pyo3(signature = (path, settings=Vec::new()))]
    fn from_file(py: Python<'_>, path: PathBuf, settings: Vec<(String, String)>) -> PyResult<Rack> {
        let changes: Vec<Override> = settings.into_iter().map(|(path, value)| Override::Set { path, value }).collect();
        fanin_scenario::Rack::from_file(path)
            .and_then(|rack| rack.with(&changes))
            .map(Rack)
            .map_err(|e| scenario_error(py, &e))
    }
    /// Reads TOML text; `name` stands for the file in messages, and relative paths start from `folder`.
    #[staticmethod]
    #[pyo3(signature = (text, name, folder=PathBuf::new(), settings=Vec::new()))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        name: &str,
        folder: PathBuf,
        settings: Vec<(String, String)>,
    ) -> PyResult<Rack> {
        let changes: Vec<Override> = settings.into_iter().map(|(path, value)| Override::Set { path, value }).collect();
        fanin_scenario::Rack::from_text(text, name)
            .and_then(|rack| rack.in_folder(folder).with(&changes))
            .map(Rack)
            .map_err(|e| scenario_error(py, &e))
    }
    /// Its name in messages.
    #[getter]
    fn file(&self) -> &str {
        self.0.file()
    }
    /// What `[rack]` says, changes included: key and value as it would be written.
    fn facts(&self) -> Vec<(String, String)> {
        self.0.facts()
    }
    /// Jiffies per second of its hosts (`stack.hz`).
    fn hz(&self, py: Python<'_>) -> PyResult<u32> {
        self.0.hz().map_err(|e| scenario_error(py, &e))
    }
    /// Its hosts acknowledge every packet of this algorithm, which lives on RTT samples.
    fn acknowledges_every_packet(&self, py: Python<'_>, cc: &str) -> PyResult<bool> {
        self.0.acknowledges_every_packet(cc).map_err(|e| scenario_error(py, &e))
    }
    /// Its switch marks: algorithms that need ECN get it.
    fn marks(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.marks().map_err(|e| scenario_error(py, &e))
    }
    /// Raises what planning any replay on this rack under this algorithm would raise.
    fn accept(&self, py: Python<'_>, cc: &str) -> PyResult<()> {
        py.detach(|| self.0.accept(cc)).map_err(|e| scenario_error(py, &e))
    }
    /// Identifies the replay on this rack under this algorithm (equal hashes and seeds give equal results), and says what starves it.
    fn check(&self, py: Python<'_>, replay: &Replay, cc: &str) -> PyResult<(String, Vec<Warning>)> {
        let (hash, told) = py.detach(|| self.0.check(&replay.traffic(), cc)).map_err(|e| scenario_error(py, &e))?;
        Ok((hash, told.iter().map(warning).collect()))
    }
    /// The replay on this rack under this algorithm. With `trace`, the queue to the aggregator, its packets and the servers' windows are
    /// recorded; with `report`, of those what a report shows.
    #[pyo3(signature = (replay, cc, seed, trace=false, report=false))]
    fn plan(
        &self,
        py: Python<'_>,
        replay: &Replay,
        cc: &str,
        seed: u64,
        trace: bool,
        report: bool,
    ) -> PyResult<RackPlan> {
        let record = if report { Record::Report } else { trace.into() };
        let made =
            py.detach(|| self.0.plan(&replay.traffic(), cc, seed, record)).map_err(|e| scenario_error(py, &e))?;
        // The traffic as the simulator takes it, a few small pieces of memory for each connection.
        if replay.is_large() {
            give_back(py);
        }
        RackPlan::of(py, made)
    }
}

/// A replay, checked and ready to run.
#[pyclass(frozen, module = "fanin._native")]
pub struct RackPlan {
    /// What to run.
    #[pyo3(get)]
    plan: Py<Plan>,
    /// Where everything of the capture went in it.
    #[pyo3(get)]
    replayed: Py<Replayed>,
}

impl RackPlan {
    fn of(py: Python<'_>, made: fanin_scenario::RackPlan) -> PyResult<RackPlan> {
        let fanin_scenario::RackPlan { spec, port, responses, rounds, stages, trees } = made;
        let (flows, plan) = (spec.flows.len(), Plan(spec, Vec::new()));
        let replayed = Replayed { ports: plan.ports(), port: port.index(), flows, responses, rounds, stages, trees };
        Ok(RackPlan { plan: Py::new(py, plan)?, replayed: Py::new(py, replayed)? })
    }

    fn whole(&self) -> fanin_scenario::RackPlan {
        let (spec, replayed) = (self.plan.get().0.clone(), self.replayed.get());
        let port = fanin_sim::spec::LinkId(replayed.port as u32);
        let (responses, trees) = (replayed.responses.clone(), replayed.trees.clone());
        let (rounds, stages) = (replayed.rounds.clone(), replayed.stages.clone());
        fanin_scenario::RackPlan { spec, port, responses, rounds, stages, trees }
    }
}

#[pymethods]
impl RackPlan {
    /// The same with the connections of `servers` as `other`, a plan of the same replay and seed, has them.
    fn mixed(&self, py: Python<'_>, other: &RackPlan, servers: Vec<String>) -> PyResult<RackPlan> {
        let made = py.detach(|| self.whole().mixed(&other.whole(), &servers));
        RackPlan::of(py, made)
    }
}

/// Where everything of a capture went in a plan: all that is needed of the plan when its run is over. Flows and messages of a million connections take
/// 0.25 GB, which the frames of the results may have then.
#[pyclass(frozen, module = "fanin._native")]
pub struct Replayed {
    /// As the plan has them.
    #[pyo3(get)]
    ports: Vec<String>,
    /// The port to the aggregator: a position in `ports`.
    #[pyo3(get)]
    port: usize,
    flows: usize,
    responses: Vec<ReplayedResponse>,
    rounds: ReplayedRounds,
    stages: ReplayedRounds,
    trees: Vec<ReplayedTree>,
}

impl Replayed {
    /// Per flow, the number of the connection in the capture that it carries responses of.
    pub fn carried(&self) -> Vec<Option<u32>> {
        outcome::connections(&self.responses, self.flows)
    }
}

#[pymethods]
impl Replayed {
    /// Where each response of the capture went: flow, and the messages of its first and last piece.
    fn responses(&self) -> PyResult<Table> {
        let rows = &self.responses;
        Table::new(vec![
            ("connection", u32s(rows.iter().map(|r| r.connection))),
            ("server", u32s(rows.iter().map(|r| r.server))),
            ("response", u32s(rows.iter().map(|r| r.number))),
            ("flow", u32s(rows.iter().map(|r| r.flow.0))),
            ("first", u32s(rows.iter().map(|r| r.first.0))),
            ("last", u32s(rows.iter().map(|r| r.last.0))),
            ("bytes", u64s(rows.iter().map(|r| r.bytes))),
        ])
    }

    /// What became of every response in a run, in ms.
    fn response_times(&self, py: Python<'_>, run: &Run, cc: &str, servers: Vec<String>) -> PyResult<Table> {
        let rows = &self.responses;
        let times = py.detach(|| outcome::response_times(rows, run.results()));
        let server = |number: u32| servers.get(number as usize).map_or("", String::as_str);
        Table::new(vec![
            ("cc", texts(repeat_n(cc, rows.len()))),
            ("seed", u64s(repeat_n(run.results().seed, rows.len()))),
            ("connection", u32s(rows.iter().map(|r| r.connection))),
            ("server", texts(rows.iter().map(|r| server(r.server)))),
            ("response", u32s(rows.iter().map(|r| r.number))),
            ("bytes", u64s(rows.iter().map(|r| r.bytes))),
            ("release_ms", all_milliseconds(times.iter().map(|t| t.release_ps))),
            ("done_ms", all_milliseconds(times.iter().map(|t| t.done_ps))),
            ("completion_ms", between(times.iter().map(|t| (t.release_ps, t.done_ps)))),
            ("timeouts", u32s(times.iter().map(|t| t.timeouts))),
        ])
    }

    /// What became of every round in a run, in ms.
    fn round_times(&self, py: Python<'_>, run: &Run, cc: &str) -> PyResult<Table> {
        let times = py.detach(|| outcome::round_times(&self.rounds, run.results()));
        rows_of_rounds("round", &times, run, cc)
    }

    /// What became of every stage of a request in a run, in ms: of what left together, from the first release to the last answer.
    fn stage_times(&self, py: Python<'_>, run: &Run, cc: &str) -> PyResult<Table> {
        let times = py.detach(|| outcome::round_times(&self.stages, run.results()));
        rows_of_rounds("stage", &times, run, cc)
    }

    /// What became of every request tree in a run, in ms: from a client's request to the aggregator's answer, which waited for others.
    fn tree_times(&self, py: Python<'_>, run: &Run, cc: &str) -> PyResult<Table> {
        let (rows, count) = (&self.trees, self.trees.len());
        let times = py.detach(|| outcome::tree_times(rows, run.results()));
        Table::new(vec![
            ("cc", texts(repeat_n(cc, count))),
            ("seed", u64s(repeat_n(run.results().seed, count))),
            ("connection", u32s(rows.iter().map(|t| t.connection))),
            ("turn", u32s(rows.iter().map(|t| t.turn))),
            ("release_ms", all_milliseconds(times.iter().map(|t| t.0))),
            ("done_ms", all_milliseconds(times.iter().map(|t| t.1))),
            ("completion_ms", between(times.iter().copied())),
        ])
    }

    /// Per flow, the number of the connection in the capture that it carries responses of; null: none.
    fn connections(&self) -> PyResult<Table> {
        Table::new(vec![("connection", optional_u32s(self.carried()))])
    }

    /// The messages of each round of the capture: its requests, whose first release begins it, and its answers, whose last delivery ends it.
    fn rounds(&self) -> PyResult<Table> {
        let rows = || {
            self.rounds.iter().enumerate().flat_map(|(n, round)| {
                let each =
                    move |message: &MessageId, answer: bool| (n as u32, round.company, message.0, u32::from(answer));
                let requests = round.requests.iter().map(move |m| each(m, false));
                requests.chain(round.answers.iter().map(move |m| each(m, true)))
            })
        };
        Table::new(vec![
            ("round", u32s(rows().map(|r| r.0))),
            ("group", u32s(rows().map(|r| r.1))),
            ("message", u32s(rows().map(|r| r.2))),
            ("answer", u32s(rows().map(|r| r.3))),
        ])
    }
}

fn rows_of_rounds(number: &'static str, times: &[outcome::RoundTimes], run: &Run, cc: &str) -> PyResult<Table> {
    Table::new(vec![
        ("cc", texts(repeat_n(cc, times.len()))),
        ("seed", u64s(repeat_n(run.results().seed, times.len()))),
        (number, u32s(times.iter().map(|t| t.round))),
        ("group", u32s(times.iter().map(|t| t.company))),
        ("requests", u32s(times.iter().map(|t| t.requests))),
        ("release_ms", all_milliseconds(times.iter().map(|t| t.release_ps))),
        ("done_ms", all_milliseconds(times.iter().map(|t| t.done_ps))),
        ("completion_ms", between(times.iter().map(|t| (t.release_ps, t.done_ps)))),
    ])
}

/// Checks the name of an algorithm, as in `gss+dctcp`, and tells whether it needs a marking switch.
///
/// Raises when there is none of that name.
#[pyfunction]
pub fn needs_ecn(py: Python<'_>, cc: &str) -> PyResult<bool> {
    fanin_cc::registry::needs_ecn(cc).map_err(|error| raise(py, Class::Algorithm, error))
}

/// Where an algorithm can run on real hosts; nothing of it for a model that the simulator alone has.
///
/// Raises when there is none of that name.
#[pyfunction]
pub fn deployment(py: Python<'_>, cc: &str) -> PyResult<Deployment> {
    let found = fanin_cc::registry::deployment(cc).map_err(|error| raise(py, Class::Algorithm, error))?;
    Ok(Deployment {
        kernel: found.kernel,
        twin: found.twin,
        sender_shim: found.sender_shim,
        receiver_shim: found.receiver_shim,
    })
}

/// As [`fanin_cc::deploy::Deployment`].
#[pyclass(frozen, get_all, module = "fanin._native")]
pub struct Deployment {
    kernel: Option<&'static str>,
    twin: Option<&'static str>,
    sender_shim: bool,
    receiver_shim: bool,
}

/// Tells whether an algorithm, as Linux runs it, lives on RTT samples, so that its receivers are to acknowledge every packet.
///
/// Raises when there is none of that name.
#[pyfunction]
pub fn needs_quickack(py: Python<'_>, cc: &str) -> PyResult<bool> {
    fanin_cc::registry::needs_quickack(cc).map_err(|error| raise(py, Class::Algorithm, error))
}
