//! Random numbers that are the same on every machine and with every version of anything: SplitMix64.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Evenly from [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly from [0, below).
    pub fn below(&mut self, below: i64) -> i64 {
        (self.share() * below as f64) as i64
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// How many times in a row something of this probability does not happen.
    pub fn misses(&mut self, probability: f64) -> i64 {
        ((1.0 - self.share()).ln() / (1.0 - probability).ln()).min(1e12) as i64
    }

    /// A waiting time with this mean.
    pub fn wait(&mut self, mean: f64) -> f64 {
        -(1.0 - self.share()).ln() * mean
    }
}
