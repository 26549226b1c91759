//! How often each of many values was seen, by bins.

use std::ops::Range;

/// Counts of a number of bins that is fixed by the first one; no memory before it.
#[derive(Default)]
pub(crate) struct Counts {
    seen: Vec<u32>,
    pub total: u64,
}

impl Counts {
    /// One more in this bin, of so many.
    #[inline]
    pub fn add(&mut self, bin: usize, bins: usize) {
        if self.seen.is_empty() {
            self.seen = vec![0; bins];
        }
        self.total += 1;
        self.seen[bin] += 1;
    }

    /// All bins in order, each with its count.
    pub fn all(&self) -> impl Iterator<Item = (usize, u64)> + Clone {
        self.seen.iter().map(|&n| u64::from(n)).enumerate()
    }

    /// These bins.
    pub fn within(&self, bins: Range<usize>) -> impl Iterator<Item = (usize, u64)> + Clone {
        self.all().skip(bins.start).take(bins.len())
    }
}

/// The first value up to which this share of all was seen; none where nothing was.
pub(crate) fn quantile<T>(counts: impl Iterator<Item = (T, u64)> + Clone, share: f64) -> Option<T> {
    let least = share * sum(counts.clone()) as f64;
    let mut seen = 0;
    let found = counts.filter(|&(_, n)| n > 0).find(|&(_, n)| {
        seen += n;
        seen as f64 >= least
    });
    found.map(|(value, _)| value)
}

/// The mean of the values; not a number where nothing was seen.
pub(crate) fn mean(counts: impl Iterator<Item = (f64, u64)> + Clone) -> f64 {
    let total = sum(counts.clone());
    counts.map(|(value, n)| value * n as f64).sum::<f64>() / total as f64
}

/// How many were counted.
pub(crate) fn sum<T>(counts: impl Iterator<Item = (T, u64)>) -> u64 {
    counts.map(|(_, n)| n).sum()
}
