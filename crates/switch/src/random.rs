//! Named streams of random numbers: one per component, so that adding a flow changes no other draw.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A component's own generator.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of component `name`, number `index`, under `seed`.
    ///
    /// ```
    /// use fanin_switch::random::Stream;
    /// let (mut a, mut b) = (Stream::new(7, "flow", 3), Stream::new(7, "flow", 3));
    /// assert_eq!(a.uniform(), b.uniform());
    /// ```
    pub fn new(seed: u64, name: &str, index: u64) -> Stream {
        Stream::from_seed(Stream::seed(seed, name, index))
    }

    /// The stream that starts from what [`Stream::seed`] said.
    pub fn from_seed(seed: [u8; 16]) -> Stream {
        Stream(Pcg64Mcg::from_seed(seed))
    }

    /// What the generator of that stream starts from: another engine that draws the same way draws the same numbers.
    pub fn seed(seed: u64, name: &str, index: u64) -> [u8; 16] {
        // FNV-1a over the name, then a finaliser (splitmix64) over each part: close seeds and indices must not give close states.
        let mut h = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            h = (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // The index enters the upper half alone, behind name and seed: streams of one name differ from their first draw.
        let low = mix(h ^ mix(seed));
        let high = mix(low ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        bytes
    }

    /// Uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        // 53 bits of a draw divided by 2^53: the greatest value is 1 - 2^-53, so that 1 - u is never 0.
        self.0.random::<f64>()
    }

    /// Uniform on 0..n; 0 for n = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.0.random_range(0..n) }
    }
}

/// The splitmix64 finaliser.
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
