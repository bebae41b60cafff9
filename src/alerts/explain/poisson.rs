//! Counts of what comes by itself: Poisson probabilities, exact while they are few, and by the normal curve where they are many.

/// Above this mean a count is as good as normal: the curve is off by less than a hundredth then.
const MANY: f64 = 200.0;

/// The logarithm of n!.
fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    let stirling = x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln();
    stirling + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

/// The probability of exactly `n` where `mean` are expected.
pub fn exactly(n: u64, mean: f64) -> f64 {
    if mean <= 0.0 {
        return f64::from(u8::from(n == 0));
    }
    (n as f64 * mean.ln() - mean - ln_factorial(n)).exp()
}

/// The probability of `n` or more where `mean` are expected. Small ones are exact too.
pub fn at_least(n: u64, mean: f64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    if mean <= 0.0 {
        return 0.0;
    }
    if (n as f64) > mean {
        // The terms fall from the first on.
        let mut term = exactly(n, mean);
        let (mut sum, mut k) = (0.0, n);
        while term > sum * 1e-14 && term > 0.0 {
            sum += term;
            k += 1;
            term *= mean / k as f64;
        }
        return sum.min(1.0);
    }
    // The terms below n fall towards zero.
    let mut term = exactly(n - 1, mean);
    let (mut sum, mut k) = (0.0, n - 1);
    while term > sum * 1e-14 && term > 0.0 {
        sum += term;
        term *= k as f64 / mean;
        if k == 0 {
            break;
        }
        k -= 1;
    }
    (1.0 - sum).max(0.0)
}

/// The area below the normal curve up to `x`, to seven digits.
fn normal(x: f64) -> f64 {
    // Of the error function (Abramowitz and Stegun, 7.1.26).
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .iter()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    let half = 0.5 * polynomial * (-z * z).exp();
    if x < 0.0 { half } else { 1.0 - half }
}

/// The probability that the bad are more than this share of all, where so many bad and so many good are expected. Of nothing, nothing is bad.
pub fn share_above(bound: f64, bad: f64, good: f64) -> f64 {
    if bad <= 0.0 || bound >= 1.0 {
        return 0.0;
    }
    let odds = (1.0 - bound) / bound;
    if bad > MANY {
        let (mean, variance) = (bad * odds - good, bad * odds * odds + good);
        return normal(mean / variance.sqrt());
    }
    let most = (bad + 10.0 * bad.sqrt() + 20.0) as u32;
    let mut good = GoodBelow::new(good);
    let (mut term, mut sum) = ((-bad).exp(), 0.0);
    for k in (1..=most).map(f64::from) {
        term *= bad / k;
        sum += term * good.below(k * odds);
    }
    sum.min(1.0)
}

/// The probability of fewer good ones than a number that grows.
struct GoodBelow {
    mean: f64,
    /// The next count, its probability, and that of all before it.
    next: u64,
    term: f64,
    sum: f64,
}

impl GoodBelow {
    fn new(mean: f64) -> Self {
        Self { mean, next: 0, term: exactly(0, mean), sum: 0.0 }
    }

    fn below(&mut self, number: f64) -> f64 {
        if self.mean > MANY {
            // A whole number is left out itself.
            return normal((number.ceil() - 0.5 - self.mean) / self.mean.sqrt());
        }
        while (self.next as f64) < number && self.next < 10_000 {
            self.sum += self.term;
            self.next += 1;
            self.term *= self.mean / self.next as f64;
        }
        self.sum.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(left: f64, right: f64, off: f64) -> bool {
        (left - right).abs() <= off
    }

    #[test]
    fn known_values() {
        assert!(near(exactly(3, 2.0), 0.180_447_044_3, 1e-9));
        assert!(near(at_least(3, 2.0), 0.323_323_583_8, 1e-9));
        assert!(near(at_least(1, 1e-9), 1e-9, 1e-17));
        assert!(near(normal(1.644_853_6), 0.95, 1e-6) && near(normal(-1.0), 0.158_655_3, 1e-6));
        assert!(near(exactly(1_000, 1_000.0), 0.012_614_6, 1e-6));
        assert!(near(at_least(1_000, 1_000.0), 0.504_205, 1e-5));
    }

    #[test]
    fn of_few_the_share_is_counted_out() {
        // More than half of them bad, with one of each expected: 0.6730 x (no good) + ... summed by hand to five bad.
        let by_hand: f64 =
            (1..40).flat_map(|bad| (0..bad).map(move |good| exactly(bad, 1.0) * exactly(good, 1.0))).sum();
        assert!(near(share_above(0.5, 1.0, 1.0), by_hand, 1e-9));
        assert_eq!(share_above(0.5, 0.0, 3.0), 0.0);
        assert_eq!(share_above(1.0, 5.0, 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn the_curve_goes_on_where_counting_ends(share in 0.001f64..0.9, accepted in 300.0f64..5_000.0) {
            let (bad, good) = (MANY, accepted);
            let (below, above) = (share_above(share, bad, good), share_above(share, bad * 1.000_001, good));
            prop_assert!(near(below, above, 0.02), "{} and {}", below, above);
        }

        #[test]
        fn more_expected_make_more_likely(n in 1u64..400, mean in 0.01f64..400.0) {
            let (few, many) = (at_least(n, mean), at_least(n, mean * 1.1));
            prop_assert!((0.0..=1.0).contains(&few) && many >= few - 1e-12);
            prop_assert!(near(at_least(n, mean) - at_least(n + 1, mean), exactly(n, mean), 1e-9));
        }
    }
}
