//! Where threads wait for each other so often that to sleep would take longer than to wait.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// How often a thread looks whether the others have come before it sleeps: some ten microseconds, the time that falling asleep and waking take.
/// Where others use the processors too, longer watching only takes time from them.
const LOOKS: u32 = 512;

/// A barrier that is watched for a while, then slept at.
pub(crate) struct Barrier {
    threads: usize,
    /// Threads that have come.
    come: AtomicUsize,
    /// How often all have come.
    round: AtomicUsize,
    /// To watch is of use: each thread has a processor of its own.
    looks: u32,
    /// Threads that sleep.
    asleep: Mutex<usize>,
    wake: Condvar,
}

impl Barrier {
    pub fn new(threads: usize) -> Barrier {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        Barrier {
            threads,
            come: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            looks: if threads <= processors { LOOKS } else { 0 },
            asleep: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    /// Returns when all threads have come. What each did before happened before what any does afterwards.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.come.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.come.store(0, Ordering::Relaxed);
            // Under the lock no thread is between its look at the round and its sleep.
            let asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            if *asleep > 0 {
                self.wake.notify_all();
            }
            return;
        }
        for _ in 0..self.looks {
            if self.round.load(Ordering::Acquire) != round {
                return;
            }
            spin_loop();
        }
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        *asleep += 1;
        while self.round.load(Ordering::Acquire) == round {
            asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        }
        *asleep -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_passes_before_all_have_come() {
        const THREADS: usize = 3;
        let (barrier, come) = (Barrier::new(THREADS), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 1..=500 {
                        come.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(come.load(Ordering::Relaxed), round * THREADS);
                        barrier.wait();
                    }
                });
            }
        });
    }
}
