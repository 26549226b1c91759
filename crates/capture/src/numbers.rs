//! Numbers for tests that look random and are the same every time.

/// A linear congruential generator (Knuth, "MMIX"), from a seed on.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    /// On [0, `below`).
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// On [`from`, `to`).
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }

    /// On [0, 1).
    pub fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }

    /// Exponential.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let share = (self.below(1 << 20) + 1) as f64 / f64::from(1 << 20);
        (-share.ln() * mean as f64) as u64
    }
}
