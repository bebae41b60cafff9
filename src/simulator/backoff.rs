//! How long a worker waits before the next attempt.

use std::time::Duration;

/// The wait after the attempt with this number (from 1): doubling from `base`, at most `most`, and up to a fifth less by
/// `spread` (0 to 1), so that what failed together does not come back together.
pub fn wait(attempt_number: u32, base: Duration, most: Duration, spread: f64) -> Duration {
    let doublings = attempt_number.saturating_sub(1).min(31);
    let whole = base.saturating_mul(1_u32 << doublings).min(most);
    whole.mul_f64(1.0 - 0.2 * spread.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stays_within_its_bounds_and_never_shrinks(number in 1_u32.., spread in 0.0..=1.0_f64) {
            let (base, most) = (Duration::from_millis(100), Duration::from_secs(30));
            let waited = wait(number, base, most, spread);
            prop_assert!(waited >= base.mul_f64(0.8) && waited <= most, "{waited:?}");
            prop_assert!(wait(number.saturating_add(1), base, most, spread) >= waited);
        }
    }
}
