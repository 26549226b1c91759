//! A class in Python as congestion control (`fanin.CongestionControl`).
//!
//! Every event becomes a call with the interpreter held; the decision is read after each and kept, since the sender reads it far more
//! often. The first exception of a run ends it: the algorithm is not asked again, the run stops at its next look at the clock, and the
//! exception is what the caller gets.

use crate::code;
use crate::error::{Class, raise};
use fanin_cc::extension::{self, Extension};
use fanin_cc::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Gate, Kind, Needs, Profile, RecoveryKind, Setting,
    Setup, State, Value, Window,
};
use fanin_units::{Duration, Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Lets the registry find classes by name.
pub fn install() {
    // A second import of the module finds the resolver of the first, which is the same.
    extension::set_resolver(resolve);
}

thread_local! {
    /// The exception that ended the run on this thread, and the algorithm that raised it.
    static FAILURE: RefCell<Option<(&'static str, PyErr)>> = const { RefCell::new(None) };
}

/// Some algorithm of the run on this thread has raised.
pub fn has_failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// Forgets an exception of an earlier run on this thread.
pub fn forget_failure() {
    FAILURE.set(None);
}

/// The exception of the run on this thread, as what its caller gets.
///
/// # Errors
/// That exception, if there was one.
pub fn check_failure(py: Python<'_>) -> PyResult<()> {
    let Some((name, cause)) = FAILURE.take() else { return Ok(()) };
    let error = raise(py, Class::Algorithm, format!("`{name}`: {}", describe(py, &cause)));
    error.set_cause(py, Some(cause));
    Err(error)
}

/// One sentence: what was raised and where.
pub fn describe(py: Python<'_>, error: &PyErr) -> String {
    let described = py
        .import("fanin.algorithms")
        // Only as a value of its own the exception has its traceback.
        .and_then(|module| module.call_method1("describe", (error.clone_ref(py).into_value(py),)))
        .and_then(|text| text.extract());
    described.unwrap_or_else(|_| error.to_string())
}

/// Gives a C file a name for `cc` in this process, beside its path.
#[pyfunction]
pub fn name_c_file(name: &str, path: PathBuf) {
    fanin_kernelcc::name_file(name, &path);
}

/// Every name that was given to a C file in this process, with the file.
#[pyfunction]
pub fn named_c_files() -> Vec<(String, PathBuf)> {
    fanin_kernelcc::named_files()
}

/// Classes that were asked for, each with its line as the registry wants it. Classes are few and live as long as the process.
static KNOWN: Mutex<Vec<(String, Py<PyAny>, &'static Algorithm)>> = Mutex::new(Vec::new());

fn resolve(name: &str) -> Result<Option<&'static Algorithm>, String> {
    if let Some(twin) = fanin_kernelcc::resolve_twin(name)? {
        return Ok(Some(twin));
    }
    if let Some(code) = code::resolve(name)? {
        return Ok(Some(code));
    }
    Python::attach(|py| class(py, name))
}

/// The line of a class that this process has, or finds by its module.
pub fn class(py: Python<'_>, name: &str) -> Result<Option<&'static Algorithm>, String> {
    find(py, name).map_err(|error| describe(py, &error))
}

fn find(py: Python<'_>, name: &str) -> PyResult<Option<&'static Algorithm>> {
    let class = py.import("fanin.algorithms")?.call_method1("find", (name,))?;
    if class.is_none() {
        return Ok(None);
    }
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., algorithm)) = known.iter().find(|(n, c, _)| n == name && c.is(&class)) {
        return Ok(Some(algorithm));
    }
    drop(known);
    let made: &'static Algorithm = Box::leak(Box::new(line(&class, name)?));
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), class.unbind(), made));
    Ok(Some(made))
}

/// The registry's line for a class.
fn line(class: &Bound<'_, PyAny>, name: &str) -> PyResult<Algorithm> {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let mut params = Vec::new();
    let declared = class.getattr("parameters")?.extract::<BTreeMap<String, Bound<'_, PyAny>>>().map_err(|_| {
        PyTypeError::new_err("`parameters` must be a dict of names and defaults, as in {\"beta\": 0.5}")
    })?;
    for (key, default) in declared {
        let key = leak(key);
        params.push(match default.extract::<bool>() {
            Ok(flag) => Setting::switch(key, flag),
            Err(_) => {
                let number: f64 = default.extract().map_err(|_| {
                    let shown = default.repr().map_or_else(|_| "something else".to_owned(), |r| r.to_string());
                    PyTypeError::new_err(format!(
                        "`parameters` has {key} = {shown}; a default is a number, True or False"
                    ))
                })?;
                Setting::parameter(key, number, f64::NEG_INFINITY, f64::INFINITY)
            }
        });
    }
    let shape = Shape::of(class)?;
    let doc: Option<String> = class.getattr("__doc__")?.extract()?;
    let title = doc.as_deref().and_then(|d| d.trim().lines().next()).unwrap_or("a class in Python").to_owned();
    let name = leak(name.to_owned());
    Ok(Algorithm {
        name,
        title: leak(title),
        source: "Python",
        needs_ecn: shape.needs.dctcp_ecn,
        params: Box::leak(params.into_boxed_slice()),
        ..Algorithm::of(Kind::Extension(Box::leak(Box::new(PythonClass {
            name,
            class: class.clone().unbind(),
            shape,
        }))))
    })
}

/// What a class says about itself, once.
#[derive(Clone, Copy, Debug)]
struct Shape {
    needs: Needs,
}

impl Shape {
    fn of(class: &Bound<'_, PyAny>) -> PyResult<Shape> {
        let mut needs = Needs::default();
        for need in class.getattr("needs")?.try_iter()? {
            let need: String = need?.extract()?;
            match need.as_str() {
                "dctcp_ecn" => needs.dctcp_ecn = true,
                "randomness" => needs.randomness = true,
                "rate_samples" => needs.rate_samples = true,
                "byte_window" => needs.byte_window = true,
                "quickack" => needs.quickack = true,
                "handles_idle" => needs.handles_idle = true,
                "controls_recovery" => needs.controls_recovery = true,
                "own_idle" => {
                    return Err(PyValueError::new_err(
                        "`needs` has `own_idle`, which meant two things: write `handles_idle` (no window validation by the stack), \
                         and `controls_recovery` where the algorithm sets its window while losses are repaired, too",
                    ));
                }
                other => {
                    return Err(PyValueError::new_err(format!(
                        "`needs` has `{other}`; there are dctcp_ecn, randomness, rate_samples, byte_window, quickack, handles_idle, controls_recovery"
                    )));
                }
            }
        }
        needs.recovery = match class.getattr("recovery")?.extract::<Option<String>>()?.as_deref() {
            None => None,
            Some("reno") => Some(RecoveryKind::Reno),
            Some("newreno") => Some(RecoveryKind::NewReno),
            Some("sack") => Some(RecoveryKind::Sack),
            Some("fack") => Some(RecoveryKind::Fack),
            Some("rack") => Some(RecoveryKind::Rack),
            Some(other) => {
                let message = format!("`recovery` is `{other}`; there are reno, newreno, sack, fack, rack");
                return Err(PyValueError::new_err(message));
            }
        };
        let base = class.py().import("fanin.algorithms")?.getattr("CongestionControl")?;
        let overrides = |method: &str| -> PyResult<bool> { Ok(!class.getattr(method)?.is(&base.getattr(method)?)) };
        needs.send_hook = overrides("before_send")?;
        needs.segment_sizes = overrides("segment_size")?;
        Ok(Shape { needs })
    }
}

struct PythonClass {
    name: &'static str,
    class: Py<PyAny>,
    shape: Shape,
}

impl Extension for PythonClass {
    fn build(&self, setup: &Setup, args: &Args) -> Result<Box<dyn CongestionControl>, String> {
        Python::attach(|py| {
            self.instance(py, setup, args).map_err(|error| describe(py, &error)).map(|made| Box::new(made) as Box<_>)
        })
    }

    fn needs(&self) -> Needs {
        self.shape.needs
    }

    fn version(&self) -> String {
        Python::attach(|py| {
            let version = py.import("fanin.algorithms").and_then(|m| m.call_method1("version", (self.class.bind(py),)));
            // Without a version two runs must not be taken for the same; the address of the class differs between processes.
            version.and_then(|v| v.extract()).unwrap_or_else(|_| format!("{:p}", self.class.as_ptr()))
        })
    }
}

impl PythonClass {
    fn instance(&self, py: Python<'_>, setup: &Setup, args: &Args) -> PyResult<PythonAlgorithm> {
        let class = self.class.bind(py);
        let parameters = class.getattr("parameters")?.call_method0("copy")?.cast_into::<PyDict>()?;
        for (name, value) in args.iter().filter(|(n, _)| parameters.contains(n).unwrap_or(false)) {
            match value {
                Value::Number(x) => parameters.set_item(name, x)?,
                Value::Flag(x) => parameters.set_item(name, x)?,
                Value::Word(x) => parameters.set_item(name, x)?,
            }
        }
        let setup = PySetup { setup: setup.clone(), parameters: parameters.unbind() };
        let instance = class.call1((setup,))?;
        let control = control_of(&instance)?;
        Ok(PythonAlgorithm { name: self.name, instance: instance.unbind(), control, needs: self.shape.needs })
    }
}

/// The decision in force, checked.
fn control_of(instance: &Bound<'_, PyAny>) -> PyResult<Control> {
    let answer = instance.call_method0(intern!(instance.py(), "control"))?;
    let (cwnd, ssthresh, pacing): (f64, f64, Option<f64>) = answer.extract().map_err(|_| {
        let shown = answer.repr().map_or_else(|_| "something else".to_owned(), |r| r.to_string());
        PyTypeError::new_err(format!(
            "control() gave {shown}; it must be (cwnd, ssthresh, pacing), pacing in bit/s or None"
        ))
    })?;
    let name = || instance.get_type().name().map_or_else(|_| "it".to_owned(), |n| n.to_string());
    if !(cwnd >= 1.0 && cwnd.is_finite()) {
        return Err(PyValueError::new_err(format!(
            "cwnd of {} is {cwnd}; it must be at least 1 packet and finite",
            name()
        )));
    }
    if ssthresh.is_nan() || ssthresh < 0.0 {
        return Err(PyValueError::new_err(format!("ssthresh of {} is {ssthresh}; it must not be negative", name())));
    }
    if let Some(rate) = pacing.filter(|r| !(*r >= 1.0 && r.is_finite())) {
        return Err(PyValueError::new_err(format!(
            "pacing of {} is {rate}; it must be at least 1 bit/s, or None",
            name()
        )));
    }
    Ok(Control { cwnd, ssthresh, pacing: pacing.map(|r| Rate::from_bps(r as u64)) })
}

/// One connection's sender.
#[derive(Debug)]
struct PythonAlgorithm {
    name: &'static str,
    instance: Py<PyAny>,
    control: Control,
    needs: Needs,
}

impl PythonAlgorithm {
    /// Tells the object something and reads its decision; `None` once something was raised.
    fn call<T>(&mut self, event: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if has_failed() {
            return None;
        }
        Python::attach(|py| {
            let instance = self.instance.bind(py);
            match event(instance).and_then(|answer| Ok((answer, control_of(instance)?))) {
                Ok((answer, control)) => {
                    self.control = control;
                    Some(answer)
                }
                Err(error) => {
                    FAILURE.set(Some((self.name, error)));
                    None
                }
            }
        })
    }
}

impl CongestionControl for PythonAlgorithm {
    fn needs(&self) -> Needs {
        self.needs
    }
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        let event = (PyConn(*conn), PyAck(*ack));
        self.call(|cc| cc.call_method1(intern!(cc.py(), "on_ack"), event).map(drop));
    }
    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        let word = match cause {
            Cause::Ecn => "ecn",
            Cause::Loss => "loss",
            Cause::Timeout { repeated: false } => "timeout",
            Cause::Timeout { repeated: true } => "repeated timeout",
        };
        self.call(|cc| cc.call_method1(intern!(cc.py(), "on_congestion"), (PyConn(*conn), word)).map(drop));
    }
    fn on_recovered(&mut self, conn: &Conn, limit: Option<f64>) {
        self.call(|cc| cc.call_method1(intern!(cc.py(), "on_recovered"), (PyConn(*conn), limit)).map(drop));
    }
    fn on_undo(&mut self, conn: &Conn) {
        self.call(|cc| cc.call_method1(intern!(cc.py(), "on_undo"), (PyConn(*conn),)).map(drop));
    }
    fn on_restart(&mut self, conn: &Conn, idle: Duration, to: Window) {
        let event = (PyConn(*conn), idle.as_secs(), to.cwnd, to.ssthresh);
        self.call(|cc| cc.call_method1(intern!(cc.py(), "on_restart"), event).map(drop));
    }
    fn before_send(&mut self, conn: &Conn, since_last: Option<Duration>) -> Gate {
        let event = (PyConn(*conn), since_last.map(Duration::as_secs));
        let answer = self.call(|cc| gate(conn.now, &cc.call_method1(intern!(cc.py(), "before_send"), event)?));
        answer.unwrap_or(Gate::Go)
    }
    fn segment_size(&mut self, conn: &Conn) -> u32 {
        let answer = self.call(|cc| size(&cc.call_method1(intern!(cc.py(), "segment_size"), (PyConn(*conn),))?));
        answer.unwrap_or(conn.mss)
    }
    fn control(&self) -> Control {
        self.control
    }
}

/// A full segment is the most that is sent; nothing, or less, is no segment.
fn size(answer: &Bound<'_, PyAny>) -> PyResult<u32> {
    match answer.extract::<u64>() {
        // The cast saturates; the sender cuts at its mss.
        Ok(bytes) if bytes >= 1 => Ok(u32::try_from(bytes).unwrap_or(u32::MAX)),
        _ => {
            let shown = answer.repr().map_or_else(|_| "something else".to_owned(), |r| r.to_string());
            Err(PyValueError::new_err(format!(
                "segment_size() gave {shown}; it must be a whole number of bytes, at least 1"
            )))
        }
    }
}

fn gate(now: Time, answer: &Bound<'_, PyAny>) -> PyResult<Gate> {
    if answer.is_none() {
        return Ok(Gate::Go);
    }
    if answer.extract::<&str>().is_ok_and(|word| word == "ack") {
        return Ok(Gate::HoldForAck);
    }
    match answer.extract::<f64>() {
        Ok(at) if at.is_finite() && at >= 0.0 => {
            let until = Time::from_ps((at * 1e12).round() as u64);
            // A time that has come holds nothing. The sender asks again after a wait, and would ask for ever at one that is over.
            Ok(if until > now { Gate::HoldUntil(until) } else { Gate::Go })
        }
        _ => Err(PyValueError::new_err(
            "before_send() must give None to go on, \"ack\", or a time in seconds to wait for",
        )),
    }
}

/// What an algorithm knows before the first packet.
#[pyclass(frozen, name = "Setup", module = "fanin._native")]
pub struct PySetup {
    setup: Setup,
    parameters: Py<PyDict>,
}

#[pymethods]
impl PySetup {
    /// Payload of a full segment in bytes.
    #[getter]
    fn mss(&self) -> u32 {
        self.setup.mss
    }
    /// Bytes a full segment takes on the wire.
    #[getter]
    fn wire(&self) -> u64 {
        self.setup.wire.get()
    }
    /// Initial window in packets.
    #[getter]
    fn initial_window(&self) -> f64 {
        self.setup.initial_window
    }
    /// Initial slow-start threshold in packets; infinite unless the stack says.
    #[getter]
    fn initial_ssthresh(&self) -> f64 {
        self.setup.initial_ssthresh
    }
    /// `rfc`, `ns2` or `linux`.
    #[getter]
    fn profile(&self) -> &'static str {
        match self.setup.profile {
            Profile::Rfc => "rfc",
            Profile::Ns2 => "ns2",
            Profile::Linux => "linux",
        }
    }
    /// Rate of the bottleneck in bit/s, if the path is known.
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.setup.path.map(|p| p.rate.bps())
    }
    /// Round trip of a full segment through empty queues in seconds, if the path is known.
    #[getter]
    fn base_rtt(&self) -> Option<f64> {
        self.setup.path.map(|p| p.base_rtt.as_secs())
    }
    /// Buffer of the bottleneck in full packets, if the path is known.
    #[getter]
    fn buffer_packets(&self) -> Option<f64> {
        self.setup.path.map(|p| p.buffer_packets)
    }
    /// The class's parameters, as the scenario set them.
    #[getter]
    fn parameters(&self, py: Python<'_>) -> Py<PyDict> {
        self.parameters.clone_ref(py)
    }
}

/// The connection as it is at this instant.
#[pyclass(frozen, name = "Conn", module = "fanin._native")]
pub struct PyConn(Conn);

#[pymethods]
impl PyConn {
    /// Now, seconds since the start of the run.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs()
    }
    /// Payload of a full segment in bytes.
    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }
    /// Smoothed round-trip time in seconds; 0 before the first sample.
    #[getter]
    fn srtt(&self) -> f64 {
        self.0.srtt.as_secs()
    }
    /// Smallest sample in seconds; 0 before the first.
    #[getter]
    fn min_rtt(&self) -> f64 {
        self.0.min_rtt.as_secs()
    }
    /// First byte that is not acknowledged.
    #[getter]
    fn snd_una(&self) -> u64 {
        self.0.snd_una
    }
    /// First byte never sent.
    #[getter]
    fn snd_nxt(&self) -> u64 {
        self.0.snd_nxt
    }
    /// Packets outstanding.
    #[getter]
    fn in_flight(&self) -> f64 {
        self.0.in_flight
    }
    /// What a loss halves, in packets.
    #[getter]
    fn loss_basis(&self) -> f64 {
        self.0.loss_basis
    }
    /// Whether the window held the sender back in the last window of data.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }
    /// `open`, `disorder`, `cwr`, `recovery` or `loss`.
    #[getter]
    fn state(&self) -> &'static str {
        match self.0.state {
            State::Open => "open",
            State::Disorder => "disorder",
            State::Cwr => "cwr",
            State::Recovery => "recovery",
            State::Loss => "loss",
        }
    }
    /// Of the message being sent: (bytes never sent, bytes sent, deadline in seconds or None), or None.
    #[getter]
    fn message(&self) -> Option<(u64, u64, Option<f64>)> {
        self.0.message.map(|m| (m.unsent, m.sent, m.deadline.map(Time::as_secs)))
    }
    /// A fresh number uniform on [0, 1) where `needs` has `randomness`, else 0.
    #[getter]
    fn uniform(&self) -> f64 {
        self.0.uniform
    }
}

/// One acknowledgement that delivered something.
#[pyclass(frozen, name = "Ack", module = "fanin._native")]
pub struct PyAck(Ack);

#[pymethods]
impl PyAck {
    /// Bytes newly acknowledged by the cumulative number.
    #[getter]
    fn acked_bytes(&self) -> u64 {
        self.0.acked_bytes
    }
    /// Segments newly acknowledged by the cumulative number.
    #[getter]
    fn acked_segments(&self) -> u32 {
        self.0.acked_segments
    }
    /// Bytes newly delivered, cumulatively or by SACK.
    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.0.delivered_bytes
    }
    /// Segments newly delivered, cumulatively or by SACK.
    #[getter]
    fn delivered_segments(&self) -> u32 {
        self.0.delivered_segments
    }
    /// The ACK carries ECN-Echo.
    #[getter]
    fn ece(&self) -> bool {
        self.0.ece
    }
    /// Round-trip sample in seconds, or None.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs)
    }
    /// First byte not yet acknowledged, after this ACK.
    #[getter]
    fn ack_seq(&self) -> u64 {
        self.0.ack_seq
    }
    /// Whether the window may grow on this ACK.
    #[getter]
    fn may_grow(&self) -> bool {
        self.0.may_grow
    }
    /// Segments declared lost by this ACK.
    #[getter]
    fn newly_lost(&self) -> u32 {
        self.0.newly_lost
    }
    /// Where `needs` has `rate_samples`: (segments delivered, interval in seconds, application-limited, segments delivered on the
    /// connection when the sample was sent, and now), or None.
    #[getter]
    fn rate(&self) -> Option<(u32, f64, bool, u64, u64)> {
        let sample = self.0.rate?;
        let interval = sample.interval.as_secs();
        Some((sample.delivered, interval, sample.app_limited, sample.prior_delivered, sample.total_delivered))
    }
}
