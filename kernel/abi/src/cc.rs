//! What `kernel/net/cc.c` calls: fanin's algorithms inside this kernel's TCP. Declared there as in `kernel/net/cc.h`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::ptr;
use fanin_linuxcc::{Hold, Out, Program, Sample, Socket, View};

unsafe extern "C" {
    fn fanin_write_notes(bytes: *const u8, length: usize);
}

/// Programs of this run, and how many connections have begun.
struct Loaded {
    programs: Vec<Program>,
    trace: bool,
    sockets: u32,
}

static mut LOADED: Loaded = Loaded { programs: Vec::new(), trace: false, sockets: 0 };

/// As `struct fanin_cc_program`.
#[repr(C)]
pub struct About {
    name: [u8; 16],
    ecn: u8,
    alone: u8,
    send_hook: u8,
    segment_sizes: u8,
}

/// Reads programs; how many, or -1.
///
/// # Safety
/// `bytes` points to `length` bytes; called once, before any connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_load(bytes: *const u8, length: usize, trace: u64) -> c_int {
    // SAFETY: as this function demands.
    let programs = Program::decode(unsafe { core::slice::from_raw_parts(bytes, length) });
    let Some(programs) = programs else { return -1 };
    let count = programs.len() as c_int;
    // SAFETY: no socket refers to it yet.
    unsafe { *ptr::addr_of_mut!(LOADED) = Loaded { programs, trace: trace != 0, sockets: 0 } };
    count
}

/// Says what a program is called and needs; 0, or -1 where there is no such program.
///
/// # Safety
/// `about` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_describe(position: u32, about: *mut About) -> c_int {
    // SAFETY: one caller at a time, after `fanin_cc_load`.
    let loaded = unsafe { &*ptr::addr_of!(LOADED) };
    let Some(program) = loaded.programs.get(position as usize) else { return -1 };
    let Ok(transport) = program.build() else { return -1 };
    let needs = transport.sender.needs();
    let mut name = [0; 16];
    let length = program.name.len().min(15);
    name[..length].copy_from_slice(&program.name.as_bytes()[..length]);
    let made = About {
        name,
        ecn: u8::from(needs.dctcp_ecn),
        alone: u8::from(needs.controls_recovery),
        send_hook: u8::from(needs.send_hook),
        segment_sizes: u8::from(needs.segment_sizes),
    };
    // SAFETY: as this function demands.
    unsafe { about.write(made) };
    0
}

/// A connection is established; null where its algorithm cannot be made.
///
/// # Safety
/// `view` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_new(position: u32, view: *const View, out: *mut Out) -> *mut Socket {
    // SAFETY: one CPU; a softirq that comes between only counts connections, too.
    let loaded = unsafe { &mut *ptr::addr_of_mut!(LOADED) };
    let Some(program) = loaded.programs.get(position as usize) else { return ptr::null_mut() };
    let number = loaded.sockets;
    loaded.sockets += 1;
    // SAFETY: as this function demands.
    let view = unsafe { &*view };
    let Ok(mut socket) = Socket::new(program, position, number, view, loaded.trace) else { return ptr::null_mut() };
    let start = socket.start(view);
    write_notes(&mut socket);
    // SAFETY: as this function demands.
    unsafe { out.write(start) };
    Box::into_raw(Box::new(socket))
}

/// The connection is gone.
///
/// # Safety
/// `socket` is from [`fanin_cc_new`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_free(socket: *mut Socket) {
    // SAFETY: as this function demands.
    drop(unsafe { Box::from_raw(socket) });
}

fn write_notes(socket: &mut Socket) {
    write(socket.take_notes());
}

/// Writes notes out.
pub(crate) fn write(notes: Option<Vec<u8>>) {
    if let Some(notes) = notes {
        // SAFETY: the kernel copies the bytes out before it returns.
        unsafe { fanin_write_notes(notes.as_ptr(), notes.len()) };
    }
}

/// Calls a socket, then writes its notes.
///
/// # Safety
/// Both pointers are valid, and no other call uses the socket: the kernel holds its lock.
unsafe fn call<R>(socket: *mut Socket, view: *const View, call: impl FnOnce(&mut Socket, &View) -> R) -> R {
    // SAFETY: as this function demands.
    let (socket, view) = unsafe { (&mut *socket, &*view) };
    let answer = call(socket, view);
    write_notes(socket);
    answer
}

/// See [`Socket::ack`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_ack(socket: *mut Socket, view: *const View, segments: u32, rtt_us: i32, ece: u32) {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, |s, v| s.ack(v, segments, rtt_us, ece != 0)) }
}

/// See [`Socket::grow`].
///
/// # Safety
/// As [`call`]; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_grow(socket: *mut Socket, view: *const View, out: *mut Out) {
    // SAFETY: as `call` demands.
    unsafe { out.write(call(socket, view, |s, v| s.grow(v))) }
}

/// See [`Socket::control`].
///
/// # Safety
/// As [`call`]; `sample` is readable, `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_control(
    socket: *mut Socket,
    view: *const View,
    sample: *const Sample,
    out: *mut Out,
) {
    // SAFETY: as `call` demands.
    unsafe { out.write(call(socket, view, |s, v| s.control(v, &*sample))) }
}

/// See [`Socket::reduce`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_reduce(socket: *mut Socket, view: *const View, by_mark: u32) -> u32 {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, |s, v| s.reduce(v, by_mark != 0)) }
}

/// See [`Socket::loss_in_cwr`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_loss_in_cwr(socket: *mut Socket, view: *const View) -> u32 {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, Socket::loss_in_cwr) }
}

/// See [`Socket::timed_out`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_timed_out(socket: *mut Socket, view: *const View) -> u32 {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, Socket::timed_out) }
}

/// See [`Socket::enters_loss`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_enters_loss(socket: *mut Socket, view: *const View) {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, Socket::enters_loss) }
}

/// See [`Socket::recovered`].
///
/// # Safety
/// As [`call`]; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_recovered(socket: *mut Socket, view: *const View, out: *mut Out) {
    // SAFETY: as `call` demands.
    unsafe { out.write(call(socket, view, Socket::recovered)) }
}

/// See [`Socket::undo`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_undo(socket: *mut Socket, view: *const View) -> u32 {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, Socket::undo) }
}

/// See [`Socket::before_send`]: 0 for now, all bits for an ACK, else a time in ns.
///
/// # Safety
/// As [`call`]; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_before_send(socket: *mut Socket, view: *const View, out: *mut Out) -> u64 {
    // SAFETY: as `call` demands.
    let (hold, decided) = unsafe { call(socket, view, Socket::before_send) };
    // SAFETY: as this function demands.
    unsafe { out.write(decided) };
    match hold {
        Hold::No => 0,
        Hold::Until(ns) => ns.clamp(1, u64::MAX - 1),
        Hold::ForAck => u64::MAX,
    }
}

/// See [`Socket::segment_size`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_segment_size(socket: *mut Socket, view: *const View) -> u32 {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, Socket::segment_size) }
}

/// See [`Socket::message`]; a deadline of 0 is none.
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_message(socket: *mut Socket, view: *const View, bytes: u64, deadline_ns: u64) {
    let deadline = (deadline_ns > 0).then_some(deadline_ns);
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, |s, v| s.message(v, bytes, deadline)) }
}

/// See [`Socket::sent`].
///
/// # Safety
/// As [`call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_cc_sent(socket: *mut Socket, view: *const View) {
    // SAFETY: as `call` demands.
    unsafe { call(socket, view, Socket::sent) }
}
