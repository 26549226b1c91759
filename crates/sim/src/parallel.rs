//! One simulation on several threads, with the same results as on one.
//!
//! The network is cut into parts ([`Partition`]), each with a calendar, ports, and ends of flows of its own. A port knows when a packet
//! arrives at the far end as soon as it has accepted it. So a part can tell another of a packet at least the time of a short packet's
//! transmission and the link's delay before it arrives: that is the look-ahead. All parts simulate one window of that length, from the
//! earliest event of any of them, then exchange what crosses the cut, and go on (conservative synchronisation: Fujimoto, "Parallel
//! Discrete Event Simulation", CACM 1990). They wait for each other once per window: what a part says at its end, the times of its next
//! event and of what it sends included, stands in one of two places that take turns, so that no thread writes what another still reads.
//!
//! The order of a part's events is the order that they have in the whole run, since it depends on time, a link's own sequence of ranks and
//! numbers only. Where a run is to stop at the event that delivers the last message, the parts run in windows as long as some message
//! has bytes that were never sent, which cannot arrive within the window; after that events happen one by one in the order of the whole run.

use crate::barrier::Barrier;
use crate::build;
use crate::engine::{Progress, Run, RunError, run};
use crate::net::Mail;
use crate::partition::{Partition, why_serial};
use crate::report;
use crate::results::Results;
use crate::spec::Spec;
use fanin_units::Time;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many windows pass between two looks at the progress callback.
const WINDOWS_PER_LOOK: u64 = 64;
/// How many events pass between two looks where they happen one by one.
const EVENTS_PER_LOOK: u64 = 1 << 18;

/// As [`run`], on so many threads where the plan can be cut into parts ([`crate::why_serial`]). Any number of threads gives the same results.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    spec: &Spec,
    threads: usize,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Results, RunError> {
    let cut = if threads < 2 || why_serial(spec, threads).is_some() { None } else { Partition::new(spec, threads) };
    let Some(partition) = cut else { return run(spec, progress) };
    let (mut runs, look_ahead) = build::build_parts(spec, &partition, progress)?;
    for run in &mut runs {
        run.start();
    }
    let mut stopped_at = spec.end.ps();
    if !in_windows(spec, &mut runs, look_ahead, progress)?
        && let Some(time) = one_by_one(spec, &mut runs, progress)?
    {
        stopped_at = time;
    }
    for run in &mut runs {
        run.check_samples()?;
        run.net.now = stopped_at;
    }
    Ok(report::report(runs, Some(&partition), stopped_at))
}

/// What the threads tell each other at the end of a window.
struct Board {
    /// By part that it is for.
    mail: Vec<Mutex<Vec<Mail>>>,
    /// Time of the next event of each part or of what it sent to others, ps.
    next: Vec<AtomicU64>,
    /// Whether a part has a message of which something was never sent.
    unsent: Vec<AtomicBool>,
    hops: Vec<AtomicU64>,
    delivered: Vec<AtomicU64>,
    /// All threads end.
    stop: AtomicBool,
}

impl Board {
    fn new(parts: usize) -> Board {
        let zeros = || (0..parts).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Board {
            mail: (0..parts).map(|_| Mutex::default()).collect(),
            next: zeros(),
            unsent: (0..parts).map(|_| AtomicBool::new(false)).collect(),
            hops: zeros(),
            delivered: zeros(),
            stop: AtomicBool::new(false),
        }
    }
}

/// Two boards that take turns: while some threads still read one, others may have come to the end of the next window.
struct Shared {
    boards: [Board; 2],
    barrier: Barrier,
}

/// Simulates window after window; true if that was all, false if the rest must happen event by event.
fn in_windows(
    spec: &Spec,
    runs: &mut [Run<'_>],
    look_ahead: u64,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<bool, RunError> {
    let parts = runs.len();
    let shared = Shared { boards: [Board::new(parts), Board::new(parts)], barrier: Barrier::new(parts) };
    let Some((first, others)) = runs.split_first_mut() else { return Ok(true) };
    let mut interrupted = None;
    let (mut windows, finite) = (0u64, first.app.delivered().1);
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..)
            .zip(others)
            .map(|(part, run)| {
                let shared = &shared;
                scope.spawn(move || simulate(spec, shared, part, run, look_ahead, &mut |_, _| true))
            })
            .collect();
        let mut look = |now: u64, board: &Board| {
            windows += 1;
            if !windows.is_multiple_of(WINDOWS_PER_LOOK) {
                return true;
            }
            let sum = |of: &[AtomicU64]| of.iter().map(|n| n.load(Ordering::Relaxed)).sum();
            let at = Time::from_ps(now);
            let look = Progress {
                now: at,
                end: spec.end,
                packet_hops: sum(&board.hops),
                messages: (sum(&board.delivered), finite),
            };
            let go_on = progress(look).is_continue();
            if !go_on {
                interrupted = Some(at);
            }
            go_on
        };
        let mut ends = vec![simulate(spec, &shared, 0, first, look_ahead, &mut look)];
        ends.extend(threads.into_iter().map(|t| t.join().unwrap_or_else(Err)));
        ends.into_iter().collect::<Result<Vec<bool>, _>>()
    });
    match (all, interrupted) {
        (Err(panic), _) => resume_unwind(panic),
        (Ok(_), Some(at)) => Err(RunError::Interrupted { at }),
        (Ok(ends), None) => Ok(ends.iter().all(|&e| e)),
    }
}

type Panic = Box<dyn std::any::Any + Send>;

/// The windows of one part. All threads take the same decisions from the same numbers. A panic is handed on when all have ended, since
/// the others would wait for ever.
fn simulate(
    spec: &Spec,
    shared: &Shared,
    part: usize,
    run: &mut Run<'_>,
    look_ahead: u64,
    go_on: &mut dyn FnMut(u64, &Board) -> bool,
) -> Result<bool, Panic> {
    let mut failed = None;
    let mut sent_for = u64::MAX;
    for board in shared.boards.iter().cycle() {
        let lock = |part: usize| board.mail[part].lock().unwrap_or_else(PoisonError::into_inner);
        for (to, mail) in run.net.outgoing().iter_mut().enumerate().filter(|(_, mail)| !mail.is_empty()) {
            let arrivals = mail.iter().filter_map(Mail::arrival);
            sent_for = arrivals.fold(sent_for, u64::min);
            lock(to).append(mail);
        }
        let next = run.net.calendar.next_time().min(std::mem::replace(&mut sent_for, u64::MAX));
        board.next[part].store(next, Ordering::Relaxed);
        board.unsent[part].store(run.has_unsent(), Ordering::Relaxed);
        board.hops[part].store(run.net.hops, Ordering::Relaxed);
        board.delivered[part].store(run.app.delivered().0, Ordering::Relaxed);
        if failed.is_some() || !go_on(run.net.now, board) {
            board.stop.store(true, Ordering::Relaxed);
        }
        shared.barrier.wait();
        let mail = std::mem::take(&mut *lock(part));
        run.take_in(mail);
        let first = board.next.iter().map(|n| n.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
        if board.stop.load(Ordering::Relaxed) || first == u64::MAX || first > spec.end.ps() {
            return failed.map_or(Ok(true), Err);
        }
        if spec.stop_when_done && run.app.delivered().1 > 0 && !board.unsent.iter().any(|u| u.load(Ordering::Relaxed)) {
            return Ok(false);
        }
        let horizon = first.saturating_add(look_ahead - 1).min(spec.end.ps());
        failed = catch_unwind(AssertUnwindSafe(|| run.window(horizon))).err();
    }
    Ok(true)
}

/// The events of all parts, one after the other in the order of the whole run, until the last message is delivered; when that was.
fn one_by_one(
    spec: &Spec,
    runs: &mut [Run<'_>],
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<u64>, RunError> {
    let (mut events, finite) = (0u64, runs[0].app.delivered().1);
    loop {
        let next = (0..runs.len()).filter_map(|part| Some((runs[part].net.calendar.peek()?, part))).min();
        let Some((place, part)) = next.filter(|(place, _)| place.time <= spec.end.ps()) else { return Ok(None) };
        runs[part].one_event(place.time);
        for to in 0..runs.len() {
            let mail = std::mem::take(&mut runs[part].net.outgoing()[to]);
            if !mail.is_empty() {
                runs[to].take_in(mail);
            }
        }
        let delivered = runs.iter().map(|r| r.app.delivered().0).sum();
        if delivered == finite {
            return Ok(Some(place.time));
        }
        events += 1;
        if events.is_multiple_of(EVENTS_PER_LOOK) {
            let now = Time::from_ps(place.time);
            let packet_hops = runs.iter().map(|r| r.net.hops).sum();
            if progress(Progress { now, end: spec.end, packet_hops, messages: (delivered, finite) }).is_break() {
                return Err(RunError::Interrupted { at: now });
            }
        }
    }
}
