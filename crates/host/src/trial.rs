//! The careful way to try a change: one destination, for a while, taken back at the end or as soon as it gets worse.
//!
//! A child of this process guards it: should this process be killed, the child takes the route back at once. A twin is held by this
//! process and goes with it.

use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::sockets::{self, Connection};
use crate::{host, twins};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the sockets are looked at before the change: what one look finds is chance.
const LOOKS_BEFORE: u32 = 5;
/// Between looks.
const EVERY: Duration = Duration::from_secs(1);
/// Fewer retransmitted segments say nothing yet.
const FEW: u32 = 10;

/// What is tried.
pub struct Trial {
    /// The destination.
    pub host: IpAddr,
    /// Options of its route.
    pub options: Vec<(String, String)>,
    /// A twin that its new connections get.
    pub twin: Option<String>,
    /// Parameters of the twin.
    pub params: Vec<(String, u32)>,
    /// How long at most.
    pub limit: Duration,
    /// The p99 of the sockets' smoothed RTTs, or the share of retransmitted segments plus 0.1 %, may reach this many times what it was before.
    pub margin: f64,
}

/// What the sockets to the destination say now, their segments counted from the moment that is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Look {
    sockets: usize,
    p99_rtt_ms: f64,
    retransmitted: u32,
    sent: u32,
    /// Sockets that have what is tried.
    trying: usize,
}

impl Look {
    fn of(now: &Connections, since: Option<&Connections>, tried: Option<&str>) -> Look {
        let mut rtts: Vec<u32> = now.values().map(|c| c.rtt_us).collect();
        rtts.sort_unstable();
        let mut look = Look { sockets: now.len(), ..Look::default() };
        look.p99_rtt_ms =
            rtts.get((rtts.len() * 99 / 100).min(rtts.len().saturating_sub(1))).map_or(0.0, |&us| f64::from(us) / 1e3);
        for (name, connection) in now {
            let earlier = since.and_then(|since| since.get(name));
            look.retransmitted += connection.retransmitted.saturating_sub(earlier.map_or(0, |c| c.retransmitted));
            look.sent += connection.sent.saturating_sub(earlier.map_or(0, |c| c.sent));
            // Without a congestion control of its own, a change is seen by every connection that opened since.
            look.trying += usize::from(match tried {
                Some(tried) => connection.congestion_control == tried,
                None => since.is_some() && earlier.is_none(),
            });
        }
        look
    }

    /// Retransmitted part of the segments sent.
    fn share(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { f64::from(self.retransmitted) / f64::from(self.sent) }
    }

    fn told(&self) -> Value {
        json!({ "sockets": self.sockets, "p99_rtt_ms": self.p99_rtt_ms, "retransmitted": self.retransmitted, "sent": self.sent })
    }
}

type Connections = BTreeMap<Vec<u8>, Connection>;

/// Runs a trial; whatever happens, nothing of it is left.
pub fn run(folder: &Path, trial: &Trial, interrupt: &Interrupt) -> Result<Value, Error> {
    // What must fail fails before anything is watched.
    drop(host::without_trial(folder)?);
    trial.twin.as_deref().map(twins::known_as).transpose()?;
    let mut first = sockets::to(trial.host)?;
    match first.len() {
        0 => crate::note(&format!(
            "no connection to {} now: there is nothing to compare with, so only the time limit ends the trial",
            trial.host
        )),
        n => crate::note(&format!("{n} connections to {}: watching them for {LOOKS_BEFORE} s before", trial.host)),
    }
    let mut before = Look::of(&first, None, None);
    for _ in 0..if first.is_empty() { 0 } else { LOOKS_BEFORE } {
        interrupt.sleep(EVERY);
        first = sockets::to(trial.host)?;
        let again = Look::of(&first, None, None);
        before = Look { p99_rtt_ms: before.p99_rtt_ms.max(again.p99_rtt_ms), ..again };
    }
    let held = trial.twin.as_deref().map(|name| twins::hold(name, &trial.params)).transpose()?;
    let mut options = trial.options.clone();
    if let Some(held) = &held {
        options.retain(|(name, _)| name != "congctl");
        options.push(("congctl".to_owned(), held.name().to_owned()));
    }
    let tried = options.iter().find(|(name, _)| name == "congctl").map(|(_, value)| value.as_str());
    let mut guard = Guard::start(folder)?;
    host::begin_trial(folder, trial.host, &options)?;
    let began = Instant::now();
    let watched = watch(trial, interrupt, &first, before, tried);
    let ended = host::end_trial(folder);
    let seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    guard.relieve();
    ended?;
    let (worst, used, stopped) = watched?;
    let keep = Look::of(&sockets::to(trial.host)?, Some(&first), tried).trying;
    Ok(json!({
        "destination": trial.host, "options": options.iter().map(|(n, v)| format!("{n} {v}")).collect::<Vec<_>>(),
        "twin": held.as_ref().map(twins::Held::name), "seconds": seconds, "stopped": stopped, "interrupted": interrupt.came(),
        "before": before.told(), "worst": worst.told(), "used": used, "keep": keep,
    }))
}

/// Until the time is over, a signal interrupts, or it gets worse: the worst, the most sockets that had it, and why it stopped early.
fn watch(
    trial: &Trial,
    interrupt: &Interrupt,
    first: &Connections,
    before: Look,
    tried: Option<&str>,
) -> Result<(Look, usize, Option<String>), Error> {
    let end = Instant::now() + trial.limit;
    let mut worst = Look { retransmitted: 0, sent: 0, ..before };
    let (mut used, mut stopped) = (0, None);
    while stopped.is_none() && !interrupt.came() && Instant::now() < end {
        interrupt.sleep(EVERY.min(end.saturating_duration_since(Instant::now())));
        let now = Look::of(&sockets::to(trial.host)?, Some(first), tried);
        used = used.max(now.trying);
        let rtt = worst.p99_rtt_ms.max(now.p99_rtt_ms);
        worst = Look { p99_rtt_ms: rtt, ..if now.share() >= worst.share() { now } else { worst } };
        stopped = is_worse(before, now, trial.margin);
    }
    Ok((worst, used, stopped))
}

/// Why the trial ends, if it does.
fn is_worse(before: Look, now: Look, margin: f64) -> Option<String> {
    if before.sockets == 0 || now.sockets == 0 {
        return None;
    }
    if now.p99_rtt_ms > margin * before.p99_rtt_ms {
        return Some(format!(
            "the p99 RTT rose from {} to {} ms, more than {margin} times",
            before.p99_rtt_ms, now.p99_rtt_ms
        ));
    }
    let (was, is) = (before.share(), now.share());
    (now.retransmitted >= FEW && is > margin * (was + 0.001))
        .then(|| format!("retransmissions rose from {:.2}% to {:.2}% of the segments", 100.0 * was, 100.0 * is))
}

/// The child that takes the route back should this process be killed.
struct Guard(Child);

impl Guard {
    fn start(folder: &Path) -> Result<Guard, Error> {
        let program = Path::new("/proc/self/exe");
        let mut command = Command::new(program);
        command.arg("--state").arg(folder).args(["guard", &std::process::id().to_string()]);
        // A terminal's Ctrl-C is for the trial.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Guard).map_err(Error::file(program))
    }

    fn relieve(&mut self) {
        // A guard that is gone needs no word.
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(b".");
        }
        let _ = self.0.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.relieve();
    }
}

/// What the child does: nothing where it is told that all is well, else it takes back what that process tried.
pub fn guard(folder: &Path, process: u32) -> Result<Value, Error> {
    let mut said = Vec::new();
    // An end without a word is the end of the trial's process.
    let _ = std::io::Read::read_to_end(&mut std::io::stdin(), &mut said);
    let undone = if said.is_empty() { host::abandon_trial(folder, process)? } else { None };
    Ok(json!({ "undone": undone }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(rtt_us: u32, retransmitted: u32, sent: u32, name: &str) -> Connection {
        Connection { rtt_us, retransmitted, sent, congestion_control: name.to_owned() }
    }

    #[test]
    fn a_trial_counts_only_what_was_sent_in_it() {
        let old = Connections::from([
            (vec![1], connection(1_000, 500, 10_000, "cubic")),
            (vec![9], connection(1, 1, 1, "cubic")),
        ]);
        let now = Connections::from([
            (vec![1], connection(2_000, 503, 12_000, "cubic")),
            (vec![2], connection(4_000, 1, 2_000, "fanin_trim")),
        ]);
        let look = Look::of(&now, Some(&old), Some("fanin_trim"));
        assert_eq!(look, Look { sockets: 2, p99_rtt_ms: 4.0, retransmitted: 4, sent: 4_000, trying: 1 });
        assert_eq!(Look::of(&now, Some(&old), None).trying, 1, "the connection that opened since");
    }

    #[test]
    fn more_retransmissions_end_a_trial_and_fewer_do_not() {
        let look =
            |sockets, p99_rtt_ms, retransmitted, sent| Look { sockets, p99_rtt_ms, retransmitted, sent, trying: 0 };
        let before = look(3, 1.0, 10, 10_000);
        assert_eq!(is_worse(before, look(3, 1.2, 24, 10_000), 1.5), None);
        let why = is_worse(before, look(3, 1.2, 40, 10_000), 1.5);
        assert_eq!(why.as_deref(), Some("retransmissions rose from 0.10% to 0.40% of the segments"));
        assert_eq!(is_worse(Look::default(), look(3, 9.0, 40, 100), 1.5), None);
        let why = is_worse(before, look(3, 1.6, 0, 10_000), 1.5);
        assert_eq!(why.as_deref(), Some("the p99 RTT rose from 1 to 1.6 ms, more than 1.5 times"));
    }
}
