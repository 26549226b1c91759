//! What `kernel/net/receiver.c` calls: fanin's algorithms of receiving hosts. Declared there as in `kernel/net/receiver.h`.

use crate::cc;
use core::ffi::c_int;
use core::ptr;
use fanin_linuxcc::receiver::{Controlled, Receivers};

static mut HOSTS: Option<Controlled> = None;

/// The receivers of this run.
///
/// # Safety
/// One caller at a time: the kernel calls with softirqs off.
unsafe fn hosts<'a>() -> Option<&'a mut Controlled> {
    // SAFETY: as this function demands.
    unsafe { (*ptr::addr_of_mut!(HOSTS)).as_mut() }
}

/// Reads receiving ends under control; how many, or -1.
///
/// # Safety
/// `bytes` points to `length` bytes; called once, before any connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_load(bytes: *const u8, length: usize, trace: u64) -> c_int {
    // SAFETY: as this function demands.
    let receivers = Receivers::decode(unsafe { core::slice::from_raw_parts(bytes, length) });
    let Some(Ok(made)) = receivers.map(|r| Controlled::new(&r, trace != 0)) else { return -1 };
    let count = made.len() as c_int;
    // SAFETY: nothing refers to it yet.
    unsafe { *ptr::addr_of_mut!(HOSTS) = Some(made) };
    count
}

/// See [`Controlled::find`]: its number plus 1, or 0.
///
/// # Safety
/// As [`hosts`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_find(host: u32, port: u32, peer: u32, peer_port: u32) -> u32 {
    let at = ((host, port as u16), (peer, peer_port as u16));
    // SAFETY: as this function demands.
    unsafe { hosts() }.and_then(|h| h.find(at)).map_or(0, |end| end + 1)
}

/// See [`Controlled::first_window`]: 0 where there is none.
///
/// # Safety
/// As [`hosts`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_first(host: u32, port: u32) -> u32 {
    // SAFETY: as this function demands.
    unsafe { hosts() }.and_then(|h| h.first_window((host, port as u16))).unwrap_or(0)
}

/// See [`Controlled::window`].
///
/// # Safety
/// As [`hosts`]; `end` is from [`fanin_receiver_find`], less 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_window(end: u32) -> u32 {
    // SAFETY: as this function demands.
    unsafe { hosts() }.map_or(u32::MAX, |h| h.window(end))
}

/// See [`Controlled::expect`].
///
/// # Safety
/// As [`fanin_receiver_window`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_expect(end: u32, now_ns: u64, zero_ns: u64, up_to: u64) {
    // SAFETY: as this function demands.
    if let Some(hosts) = unsafe { hosts() } {
        hosts.expect(end, now_ns, zero_ns, up_to);
        cc::write(hosts.take_notes());
    }
}

/// See [`Controlled::data`].
///
/// # Safety
/// As [`fanin_receiver_window`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_data(end: u32, now_ns: u64, payload: u32, advanced: u32, duplicate: u32) {
    // SAFETY: as this function demands.
    if let Some(hosts) = unsafe { hosts() } {
        hosts.data(end, now_ns, payload, advanced, duplicate != 0);
        cc::write(hosts.take_notes());
    }
}

/// See [`Controlled::hold`]: 0 for at once.
///
/// # Safety
/// As [`fanin_receiver_window`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_receiver_hold(end: u32, now_ns: u64) -> u64 {
    // SAFETY: as this function demands.
    unsafe { hosts() }.and_then(|h| h.hold(end, now_ns)).unwrap_or(0)
}
