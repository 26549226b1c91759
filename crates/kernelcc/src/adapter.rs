//! A C file as a [`CongestionControl`]: the sender's events, in the units of the kernel.
//!
//! *Departures* from a kernel: recovery is the simulator's, so that the window stands at ssthresh as soon as it is reduced and at 1 after a
//! timeout, while PRR decides what leaves; `min_tso_segs` and CA_EVENT_TX_START run per segment, not per burst; a file sees round trips in
//! whole microseconds and HZ = 1000.

use crate::abi::{AckIn, Module, ModuleParam, Socket, View};
use crate::compile::{Object, compile};
use crate::{Error, copies, twins};
use fanin_cc::deploy::Place;
use fanin_cc::extension::Extension;
use fanin_cc::{
    Ack, Args, Cause, CongestionControl, Conn, Control, Gate, Needs, PathKnowledge, Probe, Profile, Setting, Setup,
    State, Value, Window,
};
use fanin_units::{Duration, Rate, Time};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;
/// The kernel's first estimate of a rate is without limit; bytes per second.
const MOST_RATE: u64 = u64::MAX >> 1;

/// Parameters by name.
type Settings = Vec<(String, i64)>;

/// A compiled file, ready to make senders.
#[derive(Debug)]
pub struct KernelFile {
    /// `tcp_congestion_ops.name`.
    pub name: String,
    /// Changes with anything that may change what it does.
    pub version: String,
    /// `TCP_CONG_NEEDS_ECN`.
    pub needs_ecn: bool,
    object: Object,
    declared: Vec<ModuleParam>,
    params: &'static [Setting],
    places: &'static [Place],
    /// One loaded copy for each set of parameters: they are the object's globals.
    loaded: Mutex<Vec<(Settings, &'static Module)>>,
}

/// Compiles and loads a user's file.
///
/// # Errors
/// [`Error`], one sentence.
pub fn load_file(path: &Path) -> Result<KernelFile, Error> {
    KernelFile::new(compile_file(path, None)?, &[])
}

/// Compiles a user's file without loading it, in the empty folder `work` of the cache if one is given.
///
/// # Errors
/// [`Error`], one sentence.
pub fn compile_file(path: &Path, work: Option<&Path>) -> Result<Object, Error> {
    let source = std::fs::read_to_string(path).map_err(|e| Error::Unreadable(e.to_string()))?;
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => Path::new("."),
    };
    let name = path.file_name().map_or_else(|| "file.c".to_owned(), |n| n.to_string_lossy().into_owned());
    compile(&name, &source, Some(folder), work)
}

/// Compiles and loads the twin of an algorithm (`trim`, `gss+dctcp`).
///
/// # Errors
/// [`Error`], one sentence.
pub fn load_twin(algorithm: &str) -> Result<KernelFile, Error> {
    let twin = twins::find(algorithm).ok_or_else(|| {
        let names: Vec<String> = twins::TWINS.iter().map(|t| format!("{}{}", t.algorithm, twins::SUFFIX)).collect();
        Error::NoTwin(names.join(", "))
    })?;
    let places = Box::leak(Box::new([Place::Twin(twin.linux)]));
    KernelFile::new(compile(twin.file, twin.source, None, None)?, places)
}

impl KernelFile {
    /// Loads a compiled file: code of its author's begins to run.
    ///
    /// # Errors
    /// [`Error`], one sentence.
    pub(crate) fn new(object: Object, places: &'static [Place]) -> Result<KernelFile, Error> {
        let module: &'static Module = Box::leak(Box::new(Module::load(&object.path, &[])?));
        copies::is_loaded(&object.path);
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let params: Vec<Setting> = module
            .params
            .iter()
            .map(|p| {
                let name = leak(&p.name);
                if p.is_bool {
                    Setting::switch(name, p.value != 0).doc("module_param", "parameter of the C file")
                } else {
                    Setting::parameter(name, p.value as f64, p.least as f64, p.most as f64)
                        .doc("module_param", "whole number, parameter of the C file")
                }
            })
            .collect();
        Ok(KernelFile {
            name: module.name.clone(),
            version: object.version.clone(),
            needs_ecn: module.needs_ecn,
            declared: module.params.clone(),
            params: Box::leak(params.into_boxed_slice()),
            places,
            object,
            loaded: Mutex::new(vec![(Vec::new(), module)]),
        })
    }

    /// Its parameters, as the registry declares parameters.
    pub fn params(&self) -> &'static [Setting] {
        self.params
    }

    /// Where it can run on real hosts.
    pub fn places(&self) -> &'static [Place] {
        self.places
    }

    /// The parameters that differ from the file's, in the order of their names.
    fn settings(&self, setup: &Setup, args: &Args) -> Result<Settings, String> {
        let mut settings = Vec::new();
        for (param, declared) in self.params.iter().zip(&self.declared) {
            let is_set = args.names().any(|n| n == param.name);
            let value = match args.value(param, Profile::Linux).map_err(|e| e.to_string())? {
                _ if !is_set => setup.path.as_ref().and_then(|path| known(param.name, path, setup)),
                Value::Flag(on) => Some(i64::from(on)),
                Value::Number(x) if x.fract() == 0.0 => Some(x as i64),
                Value::Number(x) => return Err(format!("parameter `{}` = {x}: it must be a whole number", param.name)),
                Value::Word(_) => None,
            };
            if let Some(value) = value.filter(|v| *v != declared.value) {
                settings.push((param.name.to_owned(), value));
            }
        }
        settings.sort();
        Ok(settings)
    }

    fn module(&self, settings: &[(String, i64)]) -> Result<&'static Module, String> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = loaded.iter().find(|(s, _)| s == settings) {
            return Ok(module);
        }
        let copy = copies::take(&self.object.path).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                format!("it has more than {} sets of parameters, which is the most in one run", copies::MOST)
            }
            _ => format!("cannot load another copy of it: {error}"),
        })?;
        let module = Module::load(&unlike_any_before(copy.as_raw_fd()), settings);
        let module: &'static Module = Box::leak(Box::new(module.map_err(|e| e.to_string())?));
        loaded.push((settings.to_vec(), module));
        Ok(module)
    }
}

/// A path of this descriptor that no earlier copy had. The loader returns what it has loaded under a name, and a descriptor's number is
/// used again once its file is closed; so the copy's number is written into the path, each bit as `/` or `./`, which are the same place.
fn unlike_any_before(descriptor: i32) -> PathBuf {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let nth = COPIES.fetch_add(1, Ordering::Relaxed);
    let spelling: String = (0..u32::BITS).map(|bit| if nth >> bit & 1 == 1 { "./" } else { "/" }).collect();
    PathBuf::from(format!("/proc/self/fd/{spelling}{descriptor}"))
}

/// What the operator knows of the path, for twins that ask by these names and were not told otherwise.
fn known(param: &str, path: &PathKnowledge, setup: &Setup) -> Option<i64> {
    match param {
        "rate_pps" => Some((path.rate.bps() as f64 / (8.0 * setup.wire.get() as f64)).round() as i64),
        "buffer_packets" => Some(path.buffer_packets.round().min(f64::from(u32::MAX)) as i64),
        "base_rtt_us" => Some((path.base_rtt.ps() / 1_000_000) as i64),
        _ => None,
    }
}

impl Extension for KernelFile {
    fn build(&self, setup: &Setup, args: &Args) -> Result<Box<dyn CongestionControl>, String> {
        let module = self.module(&self.settings(setup, args)?)?;
        let start = (whole(setup.initial_window), threshold(setup.initial_ssthresh));
        // What `init` makes of the stack's window, which the sender reads before the first event.
        let first = Socket::new(module, &View { mss: setup.mss, ..View::default() }, start.0, start.1, MOST_RATE);
        Ok(Box::new(KernelSender {
            socket: None,
            module,
            start,
            first: (first.out.cwnd, first.out.ssthresh),
            wire_per_mss: setup.wire.get() as f64 / f64::from(setup.mss),
            // The SYN counts as one.
            delivered: 1,
            delivered_ce: 0,
            data_segs_out: 0,
            last_sent: None,
        }))
    }
    fn version(&self) -> String {
        self.version.clone()
    }

    fn needs(&self) -> Needs {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.first().map(|(_, module)| needs(module)).unwrap_or_default()
    }

    fn linux_name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

fn whole(packets: f64) -> u32 {
    packets.max(1.0).min(f64::from(INFINITE)) as u32
}

fn threshold(packets: f64) -> u32 {
    if packets.is_finite() { packets.max(0.0).min(f64::from(INFINITE)) as u32 } else { INFINITE }
}

fn us(duration: Duration) -> u64 {
    duration.ps() / 1_000_000
}

fn needs(module: &Module) -> Needs {
    Needs {
        dctcp_ecn: module.needs_ecn,
        randomness: module.rules_alone,
        rate_samples: module.rules_alone,
        send_hook: module.wants_send_hook,
        handles_idle: module.rules_alone,
        controls_recovery: module.rules_alone,
        settled_acks: module.rules_alone,
        empty_acks: true,
        ..Needs::default()
    }
}

/// One connection under a C file.
#[derive(Debug)]
struct KernelSender {
    module: &'static Module,
    /// Made at the first event, which has the connection's clock and sequence numbers.
    socket: Option<Socket>,
    /// The stack's cwnd and ssthresh, and those that `init` leaves.
    start: (u32, u32),
    first: (u32, u32),
    wire_per_mss: f64,
    /// Segments delivered, and of them under ECE.
    delivered: u32,
    delivered_ce: u32,
    /// Transmissions of data that the send hook saw.
    data_segs_out: u32,
    last_sent: Option<Time>,
}

impl KernelSender {
    fn view(&self, conn: &Conn) -> View {
        let message = conn.message.filter(|m| m.deadline.is_some());
        View {
            now_ns: conn.now.ps() / 1000,
            next_send_ns: conn.next_send.ps() / 1000,
            snd_una: conn.snd_una as u32,
            snd_nxt: conn.snd_nxt as u32,
            mss: conn.mss,
            srtt_us: us(conn.srtt) as u32,
            min_rtt_us: us(conn.min_rtt) as u32,
            in_flight: conn.in_flight.round() as u32,
            delivered: self.delivered,
            delivered_ce: self.delivered_ce,
            lost: conn.lost as u32,
            data_segs_out: self.data_segs_out,
            state: match conn.state {
                State::Open => 0,
                State::Disorder => 1,
                State::Cwr => 2,
                State::Recovery => 3,
                State::Loss => 4,
            },
            cwnd_limited: u32::from(conn.cwnd_limited),
            app_limited: u32::from(conn.app_limited),
            message_unsent: message.map_or(0, |m| m.unsent.min(u64::from(u32::MAX)) as u32),
            // A deadline at the clock's zero would mean none.
            deadline_ns: message.and_then(|m| m.deadline).map_or(0, |d| (d.ps() / 1000).max(1)),
            random: (conn.uniform * (1u64 << 53) as f64) as u64,
        }
    }

    /// The socket of a connection begins before its first data.
    fn begin(&mut self, view: &View) {
        if self.socket.is_none() {
            let start = View { snd_una: 0, snd_nxt: 0, in_flight: 0, state: 0, ..*view };
            self.call(&start, |_| {});
        }
    }

    /// The connection's socket; the first event makes it.
    fn call(&mut self, view: &View, call: impl FnOnce(&mut Socket)) {
        let (module, (cwnd, ssthresh)) = (self.module, self.start);
        let socket = self.socket.get_or_insert_with(|| Socket::new(module, view, cwnd, ssthresh, MOST_RATE));
        call(socket);
    }
}

impl CongestionControl for KernelSender {
    fn needs(&self) -> Needs {
        needs(self.module)
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        let mut view = self.view(conn);
        self.begin(&view);
        self.delivered = self.delivered.wrapping_add(ack.delivered_segments);
        if ack.ece {
            self.delivered_ce = self.delivered_ce.wrapping_add(ack.delivered_segments);
        }
        (view.delivered, view.delivered_ce) = (self.delivered, self.delivered_ce);
        // fanin's verdict on growth includes the window test; the kernel leaves that to the algorithm.
        let raises =
            matches!(conn.state, State::Open | State::Disorder | State::Loss) && !ack.ece && ack.acked_bytes > 0;
        view.cwnd_limited = u32::from(ack.may_grow);
        let input = AckIn {
            acked: ack.acked_segments,
            delivered: ack.delivered_segments,
            rtt_us: ack.rtt.map_or(-1, |r| us(r).min(i32::MAX as u64) as i32),
            ece: u32::from(ack.ece),
            may_raise: u32::from(ack.may_grow || raises),
            losses: ack.newly_lost,
            prior_in_flight: ack.prior_in_flight as u32,
            rate_delivered: ack.rate.map_or(-1, |r| r.delivered as i32),
            rate_prior_delivered: ack.rate.map_or(0, |r| r.prior_delivered as u32),
            rate_app_limited: u32::from(ack.rate.is_some_and(|r| r.app_limited)),
            maybe_delayed: u32::from(ack.maybe_delayed),
            rate_interval_us: ack.rate.map_or(0, |r| us(r.interval)),
        };
        self.call(&view, |socket| socket.ack(&view, &input));
    }

    fn on_empty_ack(&mut self, conn: &Conn) {
        let view = self.view(conn);
        self.begin(&view);
        self.call(&view, |socket| socket.empty_ack(&view));
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        let view = self.view(conn);
        let cause = match cause {
            Cause::Ecn => 0,
            Cause::Loss => 1,
            Cause::Timeout { repeated: false } => 2,
            Cause::Timeout { repeated: true } => 3,
        };
        self.call(&view, |socket| socket.congestion(&view, cause));
    }

    fn on_loss_in_cwr(&mut self, conn: &Conn, window: f64) {
        let view = self.view(conn);
        self.call(&view, |socket| socket.loss_in_cwr(&view, whole(window)));
    }

    fn on_recovered(&mut self, conn: &Conn, limit: Option<f64>) {
        let view = self.view(conn);
        self.call(&view, |socket| socket.recovered(&view, limit.map_or(u32::MAX, whole)));
    }

    fn on_undo(&mut self, conn: &Conn) {
        let view = self.view(conn);
        self.call(&view, |socket| socket.undo(&view));
    }

    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        let view = self.view(conn);
        self.call(&view, |socket| socket.restart(&view, whole(to.cwnd), threshold(to.ssthresh)));
    }

    fn before_send(&mut self, conn: &Conn, since_last: Option<Duration>) -> Gate {
        let sent = since_last.map(|d| Time::from_ps(conn.now.ps().saturating_sub(d.ps())));
        if sent > self.last_sent {
            self.last_sent = sent;
            self.data_segs_out = self.data_segs_out.wrapping_add(1);
        }
        let view = self.view(conn);
        self.call(&view, |socket| socket.before_send(&view));
        // The hook may have lowered the window after the sender looked at it.
        if conn.in_flight >= self.control().cwnd.max(1.0) { Gate::HoldForAck } else { Gate::Go }
    }

    fn control(&self) -> Control {
        let Some(socket) = &self.socket else {
            return Control { cwnd: f64::from(self.first.0), ssthresh: limit(self.first.1), pacing: None };
        };
        let out = socket.out;
        // The kernel paces bytes of payload; fanin's rate is that of the wire.
        let rate = out.pacing_rate as f64 * 8.0 * self.wire_per_mss;
        let pacing = (out.pacing_rate > 0 && rate < 1e15).then(|| Rate::from_bps((rate as u64).max(1)));
        Control { cwnd: f64::from(out.cwnd.max(1)), ssthresh: limit(out.ssthresh), pacing }
    }

    fn observe(&self, _probe: &mut dyn Probe) {}
}

fn limit(ssthresh: u32) -> f64 {
    if ssthresh >= INFINITE { f64::INFINITY } else { f64::from(ssthresh) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_parameters_has_a_copy_of_the_globals_of_its_own() {
        let file = load_twin("trim").unwrap();
        for value in [101, 102, 103] {
            let module = file.module(&[("base_rtt_us".to_owned(), value)]).unwrap();
            // What stood there before this copy's own was set.
            let found = module.params.iter().find(|p| p.name == "base_rtt_us").unwrap();
            let declared = file.declared.iter().find(|p| p.name == "base_rtt_us").unwrap();
            assert_eq!(found.value, declared.value);
        }
    }
}
