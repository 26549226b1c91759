//! What `kernel/net/fanin.c` calls: fanin's network inside the kernel. Declared there as in `kernel/net/fanin.h`. Its algorithms: `cc.rs`, `receiver.rs`.
//!
//! Every pointer comes from the kernel's own C, one caller at a time (one CPU, softirqs off), so what is unsafe here is that C and Rust
//! believe each other. Floating point stays on this side: the kernel's C is compiled without it.

#![no_std]

extern crate alloc;

mod cc;
mod receiver;

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int, c_void};
use fanin_fabric::{Datagram, Fabric, Sender, Step, network::Network};

unsafe extern "C" {
    fn fanin_alloc(size: usize) -> *mut u8;
    fn fanin_free(pointer: *mut u8);
    fn fanin_panic(text: *const c_char, length: usize) -> !;
    fn fanin_write_record(bytes: *const u8, length: usize);
}

/// The kernel's allocator; it aligns to 8 bytes at least, and what is larger to its power of two.
struct Kernel;

// SAFETY: `fanin_alloc` gives `size` bytes or null, aligned as said above, until `fanin_free`.
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe { fanin_alloc(layout.size().max(layout.align()).max(8)) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _: Layout) {
        // SAFETY: it came from `alloc`.
        unsafe { fanin_free(pointer) }
    }
}

#[global_allocator]
static ALLOCATOR: Kernel = Kernel;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let file = info.location().map_or("", |l| l.file());
    // SAFETY: the bytes live as long as the program.
    unsafe { fanin_panic(file.as_ptr().cast(), file.len()) }
}

/// As `struct fanin_packet`.
#[repr(C)]
pub struct Packet {
    skb: *mut c_void,
    headers: *const u8,
    header_length: u32,
    host: u32,
    to: u32,
    length: u32,
    payload: u32,
    source: u16,
    destination: u16,
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    srtt_us: u32,
    ecn: u8,
    state: u8,
    has_sender: u8,
    segments: u16,
    continues: u8,
}

/// As `struct fanin_step`.
#[repr(C)]
pub struct StepOut {
    skb: *mut c_void,
    host: u32,
    kind: u8,
    marked: u8,
}

/// Makes a network from its encoding; null if it is none.
///
/// # Safety
/// `bytes` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_fabric_new(bytes: *const u8, length: usize) -> *mut Fabric {
    // SAFETY: as this function demands.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length) };
    match Network::decode(bytes) {
        Some(network) => Box::into_raw(Box::new(Fabric::new(network))),
        None => core::ptr::null_mut(),
    }
}

/// A host sends a packet; 0 if it was dropped.
///
/// # Safety
/// `fabric` is from [`fanin_fabric_new`], `packet` and the headers it points to are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_fabric_send(fabric: *mut Fabric, now_ns: u64, packet: *const Packet) -> c_int {
    // SAFETY: as this function demands.
    let (fabric, packet) = unsafe { (&mut *fabric, &*packet) };
    // SAFETY: likewise.
    let headers = unsafe { core::slice::from_raw_parts(packet.headers, packet.header_length as usize) };
    let sender = Sender {
        cwnd: packet.cwnd,
        ssthresh: packet.ssthresh,
        in_flight: packet.in_flight,
        srtt_us: packet.srtt_us,
        state: packet.state,
    };
    let datagram = Datagram {
        handle: packet.skb as usize,
        host: packet.host,
        to: packet.to,
        ports: (packet.source, packet.destination),
        length: packet.length,
        payload: packet.payload,
        segments: packet.segments,
        continues: packet.continues != 0,
        ecn: packet.ecn,
        headers,
        sender: (packet.has_sender != 0).then_some(sender),
    };
    let taken = fabric.send(now_ns * 1000, &datagram);
    write(fabric, false);
    c_int::from(taken)
}

/// The next thing to do by `now_ns`: 0 nothing, 1 departed, 2 dropped, 3 arrived.
///
/// # Safety
/// `fabric` is from [`fanin_fabric_new`], `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_fabric_step(fabric: *mut Fabric, now_ns: u64, out: *mut StepOut) -> c_int {
    // SAFETY: as this function demands.
    let (fabric, out) = unsafe { (&mut *fabric, &mut *out) };
    let (kind, handle) = match fabric.step(now_ns * 1000) {
        Step::Idle => (0, 0),
        Step::Departed(handle) => (1, handle),
        Step::Dropped(handle) => (2, handle),
        Step::Arrived { handle, host, marked } => {
            (out.host, out.marked) = (host, u8::from(marked));
            (3, handle)
        }
    };
    (out.skb, out.kind) = (handle as *mut c_void, kind);
    write(fabric, false);
    c_int::from(kind)
}

/// When the next thing happens, in whole nanoseconds; `u64::MAX`: never.
///
/// # Safety
/// `fabric` is from [`fanin_fabric_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_fabric_next(fabric: *const Fabric) -> u64 {
    // SAFETY: as this function demands.
    unsafe { &*fabric }.next().map_or(u64::MAX, |ps| ps.div_ceil(1000))
}

/// Writes out what is left of the record; returns how many packets belonged to no connection.
///
/// # Safety
/// `fabric` is from [`fanin_fabric_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fanin_fabric_finish(fabric: *mut Fabric) -> u32 {
    // SAFETY: as this function demands.
    let fabric = unsafe { &mut *fabric };
    write(fabric, true);
    fabric.strays()
}

fn write(fabric: &mut Fabric, all: bool) {
    if let Some(record) = fabric.take_record(all) {
        // SAFETY: the kernel copies the bytes out before it returns.
        unsafe { fanin_write_record(record.as_ptr(), record.len()) }
    }
}
