//! Clock, scheduling and waiting: system calls that the standard library does not have.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. These clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock, ns.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Processor time of this thread, ns.
pub fn cpu_time() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What the wall clock, which time stamps are of, is ahead of the monotonic one, ns: the reading that was disturbed least.
pub fn wall_ahead() -> u64 {
    let reading = || {
        let (before, wall, after) = (now(), read(libc::CLOCK_REALTIME), now());
        (after - before, wall - before.midpoint(after))
    };
    let readings: [(u64, u64); 5] = std::array::from_fn(|_| reading());
    readings.into_iter().min().unwrap_or_default().1
}

/// Moves the calling thread into a network namespace.
pub fn enter_namespace(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Binds the calling thread to a CPU, with a real-time priority unless that is 0, and lets its timers fire at their nanosecond.
pub fn schedule(cpu: usize, priority: i32) -> io::Result<()> {
    // SAFETY: an all-zero set is an empty one, and `cpu` is one of its bits; both calls read what they are given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu % (8 * size_of::<libc::cpu_set_t>()), &mut set);
        check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set))?;
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        if priority > 0 {
            // musl's has more fields.
            let mut parameter: libc::sched_param = std::mem::zeroed();
            parameter.sched_priority = priority;
            check(libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter))?;
        }
    }
    Ok(())
}

/// Waits for the end of standard input, for packets if `heed` says so, and `most` ns at most; true: standard input has ended.
pub fn wait(packets: RawFd, most: u64, heed: bool) -> io::Result<bool> {
    let of = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative descriptor is not looked at.
    let mut both = [of(if heed { packets } else { -1 }), of(libc::STDIN_FILENO)];
    let time = libc::timespec {
        tv_sec: (most / 1_000_000_000) as _, // `time_t`, whose name libc deprecates for musl
        tv_nsec: (most % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: two descriptors, a time, no signal mask.
    match check(unsafe { libc::ppoll(both.as_mut_ptr(), 2, &time, std::ptr::null()) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
        _ => {}
    }
    Ok(both[1].revents != 0)
}

/// Number of a network device in the namespace of this thread.
pub fn device(name: &str) -> io::Result<i32> {
    let name = std::ffi::CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as i32),
    }
}
