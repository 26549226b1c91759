//! The only unsafe code of this crate: loading a shared object that `glue.c` is part of, and calling it.
//!
//! What makes it sound: the object was compiled from this crate's `glue.c`, which [`FANIN_ABI`] confirms; the structs below are its structs
//! field by field; the library outlives every pointer into it, because it is never unloaded; a [`Socket`] owns its memory, moves only by
//! pointer, and is used by one thread at a time (`&mut`). What the user's C does inside is the user's, as a kernel module's is.
#![allow(unsafe_code)]

use crate::Error;
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::path::Path;

const FANIN_ABI: u32 = 5;

/// What the sender knows now.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    pub now_ns: u64,
    pub next_send_ns: u64,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub mss: u32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub in_flight: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub data_segs_out: u32,
    pub state: u32,
    pub cwnd_limited: u32,
    pub app_limited: u32,
    pub message_unsent: u32,
    pub deadline_ns: u64,
    pub random: u64,
}

/// One ACK.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AckIn {
    pub acked: u32,
    pub delivered: u32,
    pub rtt_us: i32,
    pub ece: u32,
    pub may_raise: u32,
    pub losses: u32,
    pub prior_in_flight: u32,
    pub rate_delivered: i32,
    pub rate_prior_delivered: u32,
    pub rate_app_limited: u32,
    pub maybe_delayed: u32,
    pub rate_interval_us: u64,
}

/// The window after a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Out {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub pacing_rate: u64,
}

type Call = unsafe extern "C" fn(*mut u64, *const View, *mut Out);
type CallNew = unsafe extern "C" fn(*mut u64, *const View, u32, u32, u64, *mut Out);
type CallAck = unsafe extern "C" fn(*mut u64, *const View, *const AckIn, *mut Out);
type CallNumber = unsafe extern "C" fn(*mut u64, *const View, u32, *mut Out);
type CallNumbers = unsafe extern "C" fn(*mut u64, *const View, u32, u32, *mut Out);

/// One parameter of the file (`module_param`).
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleParam {
    pub name: String,
    pub value: i64,
    pub least: i64,
    pub most: i64,
    pub is_bool: bool,
}

/// A loaded object after its `module_init`.
#[derive(Debug)]
pub struct Module {
    pub name: String,
    pub needs_ecn: bool,
    /// It has `cong_control`: the window is its own in every state.
    pub rules_alone: bool,
    /// It has a hook that runs before data leaves.
    pub wants_send_hook: bool,
    pub params: Vec<ModuleParam>,
    words: usize,
    new: CallNew,
    ack: CallAck,
    congestion: CallNumber,
    loss_in_cwr: CallNumber,
    recovered: CallNumber,
    empty_ack: Call,
    undo: Call,
    restart: CallNumbers,
    before_send: Call,
    release: unsafe extern "C" fn(*mut u64),
}

/// Symbol `name` of the library.
///
/// # Safety
/// `T` is the symbol's type in `glue.c`.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, Error> {
    // SAFETY: the caller names the type.
    unsafe { library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| Error::Cache(e.to_string()))
}

impl Module {
    /// Loads the object, sets its parameters, and runs its `module_init`.
    ///
    /// # Errors
    /// [`Error::Cache`] where it cannot be loaded; [`Error::NotCongestionControl`] where nothing usable is registered.
    pub fn load(path: &Path, settings: &[(String, i64)]) -> Result<Module, Error> {
        // SAFETY: loading runs the object's constructors: those of the shim, which fill a table.
        let library =
            unsafe { Library::new(path) }.map_err(|e| Error::Cache(format!("cannot load {}: {e}", path.display())))?;
        // Kept for the life of the process: functions and parameters are used until then.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: each type is that of the function in glue.c; strings end in a zero and live in the library.
        unsafe {
            let abi: unsafe extern "C" fn() -> u32 = symbol(library, "fanin_abi")?;
            if abi() != FANIN_ABI {
                return Err(Error::Cache(format!("{} is of another version; remove it", path.display())));
            }
            let params = set_params(library, settings)?;
            let start: unsafe extern "C" fn() -> i32 = symbol(library, "fanin_start")?;
            let missing = match start() {
                0 => None,
                1 => Some("it registers no tcp_congestion_ops in its module_init()"),
                _ => Some(
                    "its tcp_congestion_ops lacks what the kernel demands: ssthresh, undo_cwnd, and cong_avoid or cong_control",
                ),
            };
            if let Some(what) = missing {
                return Err(Error::NotCongestionControl(what.to_owned()));
            }
            let ca_name: unsafe extern "C" fn() -> *const c_char = symbol(library, "fanin_name")?;
            let flags: unsafe extern "C" fn() -> u32 = symbol(library, "fanin_flags")?;
            let hooks: unsafe extern "C" fn() -> u32 = symbol(library, "fanin_hooks")?;
            let size: unsafe extern "C" fn() -> u64 = symbol(library, "fanin_sock_size")?;
            Ok(Module {
                name: text(ca_name()),
                needs_ecn: flags() & 2 != 0,
                rules_alone: hooks() & 1 != 0,
                wants_send_hook: hooks() & 2 != 0,
                params,
                words: (size() as usize).div_ceil(8),
                new: symbol(library, "fanin_new")?,
                ack: symbol(library, "fanin_on_ack")?,
                congestion: symbol(library, "fanin_on_congestion")?,
                loss_in_cwr: symbol(library, "fanin_on_loss_in_cwr")?,
                recovered: symbol(library, "fanin_on_recovered")?,
                empty_ack: symbol(library, "fanin_on_empty_ack")?,
                undo: symbol(library, "fanin_on_undo")?,
                restart: symbol(library, "fanin_on_restart")?,
                before_send: symbol(library, "fanin_before_send")?,
                release: symbol(library, "fanin_release")?,
            })
        }
    }
}

/// The module's parameters as it declares them, set as asked for.
///
/// # Safety
/// The library is one of glue.c's, of this version.
unsafe fn set_params(library: &'static Library, settings: &[(String, i64)]) -> Result<Vec<ModuleParam>, Error> {
    // SAFETY: each type is that of the function in glue.c.
    unsafe {
        let count: unsafe extern "C" fn() -> u32 = symbol(library, "fanin_param_count")?;
        let name_of: unsafe extern "C" fn(u32) -> *const c_char = symbol(library, "fanin_param_name")?;
        let get: unsafe extern "C" fn(u32) -> i64 = symbol(library, "fanin_param_get")?;
        let set: unsafe extern "C" fn(u32, i64) = symbol(library, "fanin_param_set")?;
        let is_bool: unsafe extern "C" fn(u32) -> u32 = symbol(library, "fanin_param_is_bool")?;
        let range: unsafe extern "C" fn(u32, *mut i64, *mut i64) = symbol(library, "fanin_param_range")?;
        let mut params = Vec::new();
        for i in 0..count() {
            let name = text(name_of(i));
            let (mut least, mut most) = (0, 0);
            range(i, &mut least, &mut most);
            let value = get(i);
            if let Some((_, asked)) = settings.iter().find(|(n, _)| *n == name) {
                set(i, *asked);
            }
            params.push(ModuleParam { name, value, least, most, is_bool: is_bool(i) != 0 });
        }
        Ok(params)
    }
}

/// A string of the library.
///
/// # Safety
/// It ends in a zero.
unsafe fn text(string: *const c_char) -> String {
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// One connection's `struct sock`.
#[derive(Debug)]
pub struct Socket {
    module: &'static Module,
    memory: Box<[u64]>,
    /// The window after the last call.
    pub out: Out,
}

impl Socket {
    /// A new connection: `init` has run.
    pub fn new(module: &'static Module, view: &View, cwnd: u32, ssthresh: u32, max_rate: u64) -> Socket {
        let mut socket = Socket { module, memory: vec![0; module.words].into_boxed_slice(), out: Out::default() };
        // SAFETY: the memory is as large as glue.c says its struct is and aligned for its widest field.
        unsafe { (module.new)(socket.memory.as_mut_ptr(), view, cwnd, ssthresh, max_rate, &mut socket.out) };
        socket
    }
    /// An ACK arrived.
    pub fn ack(&mut self, view: &View, ack: &AckIn) {
        // SAFETY: as in `new`; the memory was initialised there.
        unsafe { (self.module.ack)(self.memory.as_mut_ptr(), view, ack, &mut self.out) };
    }
    /// Send less: 0 mark, 1 loss, 2 timeout, 3 repeated timeout.
    pub fn congestion(&mut self, view: &View, cause: u32) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.congestion)(self.memory.as_mut_ptr(), view, cause, &mut self.out) };
    }
    /// A recovery begins within an ECN reduction, while `window` packets may be outstanding.
    pub fn loss_in_cwr(&mut self, view: &View, window: u32) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.loss_in_cwr)(self.memory.as_mut_ptr(), view, window, &mut self.out) };
    }
    /// Recovery ended.
    pub fn recovered(&mut self, view: &View, limit: u32) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.recovered)(self.memory.as_mut_ptr(), view, limit, &mut self.out) };
    }
    /// An ACK that delivers nothing.
    pub fn empty_ack(&mut self, view: &View) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.empty_ack)(self.memory.as_mut_ptr(), view, &mut self.out) };
    }
    /// A reduction is taken back.
    pub fn undo(&mut self, view: &View) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.undo)(self.memory.as_mut_ptr(), view, &mut self.out) };
    }
    /// The window after idleness.
    pub fn restart(&mut self, view: &View, cwnd: u32, ssthresh: u32) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.restart)(self.memory.as_mut_ptr(), view, cwnd, ssthresh, &mut self.out) };
    }
    /// Data is about to leave.
    pub fn before_send(&mut self, view: &View) {
        // SAFETY: as in `ack`.
        unsafe { (self.module.before_send)(self.memory.as_mut_ptr(), view, &mut self.out) };
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: as in `ack`; nothing uses the memory afterwards.
        unsafe { (self.module.release)(self.memory.as_mut_ptr()) };
    }
}
