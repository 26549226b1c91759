//! What happens when there is no memory left: a sentence and exit code 2, where the command asks for it.
//!
//! `Vec` and its like end the process by a signal then, with words that no user understands; so do those of Polars, whose allocator is its own.
#![allow(unsafe_code)]

use pyo3::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

/// What a command says that ran out of memory.
const SENTENCE: &str = "fanin: error: out of memory: this needs more than the machine, or its limit (ulimit -v), has; take a shorter capture, \
     fewer algorithms or seeds, or a machine with more\n";

/// Set by the command: a library must not end the process that it is used in.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Where it is said: standard error, unless the command put something else in its place.
static SAID_ON: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);

/// Words of a shell that removes what was under way, prepared while there is memory; null where there is nothing to remove.
static CLEANING: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());

/// Removes each scratch file or folder that it is given, and each other folder if it is empty.
const CLEAN: &std::ffi::CStr =
    c"for p; do case \"${p##*/}\" in .fanin-*|.new-*) rm -rf -- \"$p\" ;; *) rmdir -- \"$p\" 2>/dev/null ;; esac; done; exit 2";

/// The system's allocator.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: every call is the system allocator's, with the same arguments; what it returns is returned.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.realloc(old, layout, size) })
    }

    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn some(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && ENDS.load(Ordering::Relaxed) {
        end();
    }
    memory
}

/// Says the sentence, unless another thread of this process has.
fn say(on: i32) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::AcqRel) {
        // SAFETY: a system call; the text lives as long as the process.
        unsafe { libc::write(on, SENTENCE.as_ptr().cast(), SENTENCE.len()) };
    }
}

/// Says the sentence and ends the process at once, as a signal handler may. Without memory this process cleans nothing up: a shell takes its place.
#[cold]
fn end() -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    while ENDING.swap(true, Ordering::AcqRel) {
        // Another thread ends the process.
        // SAFETY: a system call.
        unsafe { libc::pause() };
    }
    say(SAID_ON.load(Ordering::Relaxed));
    // SAFETY: all are system calls; the words live as long as the process.
    unsafe {
        let words = CLEANING.load(Ordering::Acquire);
        if !words.is_null() {
            libc::execv(c"/bin/sh".as_ptr(), words);
        }
        libc::_exit(2)
    }
}

/// An abort, or an instruction that V8 ends itself by: of an allocation if memory is limited or a probe finds none, else of a fault that must stay
/// visible.
extern "C" fn aborted(signal: libc::c_int) {
    const PROBE: usize = 1 << 30;
    // SAFETY: system calls that a signal handler may make; the probe is never read or written.
    let limited = unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let told = libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) == 0 && limit.rlim_cur != libc::RLIM_INFINITY;
        told || libc::mmap(null_mut(), PROBE, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
            == libc::MAP_FAILED
    };
    if limited {
        end();
    }
    // SAFETY: gives the signal back to the system; `abort`, or the instruction when it is tried again, then raises it again.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Gives free memory back to the system. The allocator keeps it where something small is in use behind it, and each thread has a place of its own to
/// keep it in, so that what one run left is of no use to the next.
#[pyfunction]
pub fn give_back(py: Python<'_>) {
    #[cfg(target_env = "gnu")]
    // SAFETY: a call of the allocator, which moves and frees nothing that is in use.
    py.detach(|| unsafe {
        libc::malloc_trim(0);
    });
    #[cfg(not(target_env = "gnu"))]
    let _ = py;
}

/// What is to be removed if memory runs out: scratch, and then the folders that were made for it.
#[pyfunction]
pub fn clean_without_memory(paths: Vec<PathBuf>) {
    let paths: Vec<CString> =
        paths.into_iter().filter_map(|p| CString::new(p.into_os_string().into_vec()).ok()).collect();
    if paths.is_empty() {
        CLEANING.store(null_mut(), Ordering::Release);
        return;
    }
    let before = [c"sh", c"-c", CLEAN, c"sh"].map(std::ffi::CStr::as_ptr);
    // Never freed: another thread may be about to use what was there before. It is a few words for each folder of results.
    let words = before.into_iter().chain(paths.into_iter().map(|p| p.into_raw().cast_const())).chain([null()]);
    CLEANING.store(Box::leak(words.collect::<Box<[_]>>()).as_mut_ptr(), Ordering::Release);
}

/// Removes what `clean_without_memory` named, and ends the process with exit code 2.
#[pyfunction]
pub fn clean_and_end() {
    end()
}

/// Says on this file descriptor that memory ran out, unless a failed allocation of another thread has said it.
#[pyfunction]
pub fn say_without_memory(said_on: i32) {
    say(said_on);
}

/// From now on a failed allocation ends the process with a sentence on this file descriptor and exit code 2.
#[pyfunction]
#[pyo3(signature = (said_on=2))]
pub fn end_without_memory(said_on: i32) {
    SAID_ON.store(said_on, Ordering::Relaxed);
    ENDS.store(true, Ordering::Relaxed);
    for signal in [libc::SIGABRT, libc::SIGTRAP, libc::SIGILL] {
        // SAFETY: the handler makes nothing but system calls.
        unsafe { libc::signal(signal, aborted as *const () as libc::sighandler_t) };
    }
}
