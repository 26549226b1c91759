//! Sizes of records.

use fanin_cc::model::tcprand::{Adaptive, payload};

/// Multiplicative decrease of CUBIC in Linux (net/ipv4/tcp_cubic.c: 717/1024).
const BETA: f64 = 717.0 / 1024.0;
/// No reduction yet (TCP_INFINITE_SSTHRESH).
const INFINITE: u32 = 0x7fff_ffff;

/// How rMin is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Least {
    /// The same for every segment, bytes.
    Static(f64),
    /// By the growth curve of CUBIC.
    Adaptive(Adaptive),
}

/// A socket's state when it writes (`TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// tcpi_snd_mss, bytes.
    pub mss: u32,
    /// tcpi_snd_cwnd, packets.
    pub cwnd: u32,
    /// tcpi_snd_ssthresh, packets.
    pub ssthresh: u32,
}

impl Least {
    /// rMin now, bytes.
    ///
    /// ```
    /// use fanin_tcprand::records::{Least, Window};
    ///
    /// let adaptive = Least::Adaptive(Default::default());
    /// let window = |cwnd, ssthresh| Window { mss: 1460, cwnd, ssthresh };
    /// assert_eq!(adaptive.bytes(window(10, u32::MAX)), 1460.0, "no reduction yet");
    /// // A reduction from 100 to 70: half way up, rMin is that of the paper's example.
    /// assert_eq!(adaptive.bytes(window(85, 70)).round(), 1009.0);
    /// ```
    pub fn bytes(&self, window: Window) -> f64 {
        let mss = f64::from(window.mss);
        match self {
            Least::Static(bytes) => bytes.min(mss),
            Least::Adaptive(_) if window.ssthresh >= INFINITE => mss,
            Least::Adaptive(rule) => {
                let start = f64::from(window.ssthresh);
                rule.r_min(f64::from(window.cwnd), start, start / BETA, mss)
            }
        }
    }
}

/// Random numbers on [0, 1): xorshift128+ (Vigna 2017), since a library in front of a program must not call what the program may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(u64, u64);

impl Random {
    /// From a seed; each `stream` is another sequence.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15, stream.wrapping_mul(0xd1b5_4a32_d192_ed03) | 1);
        for _ in 0..16 {
            random.draw();
        }
        random
    }

    /// The next one.
    pub fn draw(&mut self) -> f64 {
        let (mut a, b) = (self.0, self.1);
        a ^= a << 23;
        a ^= b ^ (a >> 18) ^ (b >> 5);
        (self.0, self.1) = (b, a);
        (a.wrapping_add(b) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Length of the next record.
pub fn next(least: &Least, window: Window, random: &mut Random) -> usize {
    payload(least.bytes(window), window.mss, random.draw()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_sizes_are_uniform_between_the_least_and_the_mss() {
        let (least, window) = (Least::Static(200.0), Window { mss: 1448, cwnd: 10, ssthresh: 5 });
        let mut random = Random::new(1, 7);
        let mut sizes: Vec<usize> = (0..100_000).map(|_| next(&least, window, &mut random)).collect();
        sizes.sort_unstable();
        assert!(sizes[0] >= 200 && sizes[sizes.len() - 1] <= 1448);
        // Deciles of a uniform distribution on 1249 sizes; one in 100,000 drawn lies within 0.5 % of the range.
        for tenth in 0..=9 {
            let ideal = 200.0 + 1249.0 * f64::from(tenth) / 10.0;
            let drawn = sizes[sizes.len() * tenth as usize / 10] as f64;
            assert!((drawn - ideal).abs() < 10.0, "{tenth}: {drawn} and not {ideal}");
        }
    }

    #[test]
    fn a_least_size_above_the_mss_is_ordinary_tcp() {
        let window = Window { mss: 500, cwnd: 10, ssthresh: 5 };
        let mut random = Random::new(3, 0);
        assert!((0..1000).all(|_| next(&Least::Static(9000.0), window, &mut random) == 500));
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| Random::new(seed, stream).draw();
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
        assert_eq!(first(1, 1), first(1, 1));
    }
}
