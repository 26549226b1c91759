//! CUBIC in the kernel's fixed-point arithmetic: windows in whole packets, time in 1/1024 s read from jiffies.
//!
//! *Source*: `net/ipv4/tcp_cubic.c`. *Departure*: the first guess of the cube root is computed, where the kernel looks it up in a
//! table refined by hand; after the same Newton step K differs by at most 0.15 % (both are within 0.2 % of the true root).

#[cfg(not(feature = "std"))]
use crate::bare::*;
use super::Constants;
use crate::{Credit, Probe};
use fanin_units::{Duration, Time};

const PS_PER_SECOND: u64 = 1_000_000_000_000;
const PS_PER_US: u64 = 1_000_000;
/// Acknowledged packets per packet of growth: at most this while no loss has been seen, at least that always (1.5 x per window).
const MOST_BEFORE_LOSS: u64 = 20;
const LEAST: u64 = 2;

/// The kernel's `struct bictcp`.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    hz: u64,
    /// β in 1/1024.
    beta: u64,
    fast_convergence: bool,
    friendly: bool,
    /// C in 1/1024 per s^3: `cube_rtt_scale`.
    scale: u64,
    /// Acknowledged packets per packet of AIMD growth, in 1/8 of the window: `beta_scale`.
    beta_scale: u64,
    /// Window of the last loss after fast convergence; 0 before the first and after a timeout.
    last_max: u64,
    /// Where the curve is flat.
    origin: u64,
    /// In 1/1024 s.
    k: u64,
    epoch: Option<Start>,
    ack_cnt: u64,
    tcp_cwnd: u64,
    cnt: u64,
    target: u64,
    /// Window and jiffy of the last evaluation of the curve.
    last: Option<(u64, u64)>,
    delay_min: Option<Duration>,
    credit: Credit,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    at: Time,
    cwnd: u64,
}

impl Kernel {
    pub fn new(constants: &Constants) -> Kernel {
        let beta = (constants.beta * 1024.0).round() as u64;
        Kernel {
            hz: constants.hz,
            beta,
            fast_convergence: constants.fast_convergence,
            friendly: constants.friendly,
            // bic_scale: 41, times 10 for 0.4 packets/s^3.
            scale: ((constants.c * 102.4).round() as u64).max(1) * 10,
            // 717/1024 of the window are left: 8 (1024 + 717)/3/(1024 - 717) = 15, a packet per 15/8 of a window.
            beta_scale: 8 * (1024 + beta) / 3 / (1024 - beta),
            last_max: 0,
            origin: 0,
            k: 0,
            epoch: None,
            ack_cnt: 0,
            tcp_cwnd: 0,
            cnt: 0,
            target: 0,
            last: None,
            delay_min: None,
            credit: Credit::default(),
        }
    }

    /// After a timeout (`bictcp_reset`). The growth counter is the socket's, not CUBIC's, and is cleared by the timeout too.
    pub fn reset(&mut self) {
        self.last_max = 0;
        self.origin = 0;
        self.k = 0;
        self.epoch = None;
        self.ack_cnt = 0;
        self.tcp_cwnd = 0;
        self.cnt = 0;
        self.last = None;
        self.delay_min = None;
        self.credit = Credit::default();
    }

    pub fn epoch_start_mut(&mut self) -> Option<&mut Time> {
        self.epoch.as_mut().map(|e| &mut e.at)
    }

    /// Window at the start of the epoch, and the curve's origin.
    pub fn epoch(&self) -> (Option<f64>, f64) {
        match self.epoch {
            _ if self.last_max == 0 => (None, 0.0),
            Some(epoch) => (Some(epoch.cwnd as f64), self.origin as f64),
            None => (None, self.last_max as f64),
        }
    }

    /// The smallest round trip; samples of the first second of an epoch do not count, the queue is still full of the last one.
    pub fn sample(&mut self, now: Time, rtt: Option<Duration>) {
        let fresh = self.epoch.is_some_and(|e| now.since(e.at) < Duration::s(1));
        if let (Some(rtt), false) = (rtt, fresh) {
            self.delay_min = Some(self.delay_min.map_or(rtt, |d| d.min(rtt)));
        }
    }

    fn jiffies(&self, time: Time) -> u64 {
        time.ps() / (PS_PER_SECOND / self.hz)
    }

    /// `bictcp_update`.
    fn update(&mut self, cwnd: u64, now: Time, acked: u32) {
        self.ack_cnt += u64::from(acked);
        let jiffy = self.jiffies(now);
        // At the same window the curve is evaluated once in HZ/32 jiffies, and at any once in a jiffy.
        if self.last.is_some_and(|(w, at)| w == cwnd && jiffy.saturating_sub(at) <= self.hz / 32) {
            return;
        }
        let evaluated = self.epoch.is_some() && self.last.is_some_and(|(_, at)| at == jiffy);
        if !evaluated {
            self.last = Some((cwnd, jiffy));
            let start = match self.epoch {
                Some(start) => start,
                None => self.begin(cwnd, now, acked),
            };
            self.follow_curve(cwnd, jiffy - self.jiffies(start.at).min(jiffy));
        }
        if self.friendly {
            self.keep_up(cwnd);
        }
        self.cnt = self.cnt.max(LEAST);
    }

    fn begin(&mut self, cwnd: u64, now: Time, acked: u32) -> Start {
        let start = Start { at: now, cwnd };
        self.epoch = Some(start);
        self.ack_cnt = u64::from(acked);
        self.tcp_cwnd = cwnd;
        if self.last_max <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            // K = cubic_root((W_max - cwnd) / C) in 1/1024 s: cube_factor is 2^40 / cube_rtt_scale.
            self.k = cube_root((1 << 40) / self.scale * (self.last_max - cwnd));
            self.origin = self.last_max;
        }
        start
    }

    /// The curve one round trip ahead, `age` jiffies into the epoch.
    fn follow_curve(&mut self, cwnd: u64, age: u64) {
        let delay_us = self.delay_min.map_or(0, |d| d.ps() / PS_PER_US);
        // t = now - epoch_start + delay_min: where the window is to be when these ACKs' packets are acknowledged (RFC 9438 section 4.2).
        let t = ((age + (delay_us * self.hz).div_ceil(1_000_000)) << 10) / self.hz;
        let offset = u128::from(t.abs_diff(self.k));
        // C (t - K)^3, with C in 1/1024 and t in 1/1024 s: cube_rtt_scale * offs^3 >> (10 + 3 * BICTCP_HZ).
        let delta = (u128::from(self.scale) * offset * offset * offset) >> 40;
        // Windows are far below 2^32; the cap only keeps a year of idleness from overflowing.
        let delta = delta.min(1 << 32) as u64;
        self.target = if t < self.k { self.origin.saturating_sub(delta) } else { self.origin + delta };
        // cwnd / (target - cwnd) ACKs per packet reach the target in a window; at or above it 1 % per window.
        self.cnt = if self.target > cwnd { cwnd / (self.target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            self.cnt = self.cnt.min(MOST_BEFORE_LOSS);
        }
    }

    /// The window of an AIMD sender since the start of the epoch, and growth towards it.
    fn keep_up(&mut self, cwnd: u64) {
        // RFC 9438 section 4.3: W_est grows by 3 (1 - beta)/(1 + beta) per window; a slower CUBIC takes its pace.
        let per_packet = ((cwnd * self.beta_scale) >> 3).max(1);
        let grown = self.ack_cnt.saturating_sub(1) / per_packet;
        self.ack_cnt -= grown * per_packet;
        self.tcp_cwnd += grown;
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }

    pub fn grow(&mut self, cwnd: &mut f64, now: Time, segments: u32) {
        self.update(cwnd.max(1.0) as u64, now, segments);
        self.credit.grow(cwnd, self.cnt, segments);
    }

    /// `cubictcp_recalc_ssthresh`.
    pub fn reduce(&mut self, cwnd: f64, basis: f64) -> f64 {
        let cwnd = cwnd as u64;
        self.epoch = None;
        // The counter is the socket's: `tcp_init_cwnd_reduction` clears it.
        self.credit = Credit::default();
        let lower = self.fast_convergence && cwnd < self.last_max;
        self.last_max = if lower { cwnd * (1024 + self.beta) / 2048 } else { cwnd };
        (basis.max(0.0) as u64 * self.beta / 1024).max(2) as f64
    }

    pub fn observe(&self, probe: &mut dyn Probe) {
        probe.value("cubic_w_max", self.last_max as f64);
        probe.value("cubic_cnt", self.cnt as f64);
        probe.value("cubic_target", self.target as f64);
        if self.epoch.is_some() {
            probe.value("cubic_k_s", self.k as f64 / 1024.0);
            probe.value("cubic_w_est", self.tcp_cwnd as f64);
        }
    }
}

/// A guess from the leading six bits and one Newton step; `a` is at least 64.
fn cube_root(a: u64) -> u64 {
    // `cubic_root`: fls64, the table's guess, and x = (2 x + a/x^2)/3, a third being 341/1024.
    let bits = u64::from(64 - a.leading_zeros());
    let shift = ((bits * 84) >> 8) - 1;
    let cell = a >> (3 * shift);
    // In 1/64, a little above the cell's upper edge, where the kernel's table is.
    let guess = (64.0 * ((cell + 1) as f64).cbrt()).ceil() as u64 + 1;
    let x = (guess << shift) >> 6;
    ((2 * x + a / (x * (x - 1))) * 341) >> 10
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    #[test]
    fn the_root_is_within_two_thousandths_and_4271_where_the_kernels_is() {
        let factor = (1u64 << 40) / 410;
        assert_eq!(cube_root(factor * 29), 4271);
        for n in 1..20_000u64 {
            let (ours, exact) = (cube_root(factor * n) as f64, ((factor * n) as f64).cbrt());
            assert!((ours / exact - 1.0).abs() < 0.002, "{n}: {ours}, {exact}");
        }
    }
}
