//! What a sample can carry: exact bounds on a share (Clopper and Pearson, 1934) and on a quantile, each true in at least 95 of 100 samples.

/// How often a bound may be wrong.
const WRONG: f64 = 0.05;

/// The probabilities of at most 0, 1, 2 and so on hits in `n` tries that hit with probability `p`, which is above 0 and below 1.
fn cumulative(n: u64, p: f64) -> impl Iterator<Item = f64> {
    let odds = (p / (1.0 - p)).ln();
    let (mut log, mut sum) = (n as f64 * (1.0 - p).ln(), 0.0f64);
    (0..n).map(move |hits| {
        sum += log.exp();
        log += ((n - hits) as f64 / (hits + 1) as f64).ln() + odds;
        sum.min(1.0)
    })
}

/// The probability of at most `most` hits in `n` tries that hit with probability `p`.
fn at_most(most: u64, n: u64, p: f64) -> f64 {
    if most >= n || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    cumulative(n, p).take(most as usize + 1).last().unwrap_or(1.0)
}

/// The share of which `falls` is false up to it and true beyond.
fn turning(falls: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // 2^-60 is finer than any share that matters.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if falls(middle) { high = middle } else { low = middle }
    }
    high
}

/// The share is surely not above this: with one that is, so few hits would come in fewer than 5 of 100 samples.
pub fn share_at_most(hits: u64, n: u64) -> f64 {
    if hits >= n { 1.0 } else { turning(|p| at_most(hits, n, p) < WRONG) }
}

/// The share is surely not below this.
pub fn share_at_least(hits: u64, n: u64) -> f64 {
    if hits == 0 { 0.0 } else { turning(|p| 1.0 - at_most(hits - 1, n, p) > WRONG) }
}

/// So many are needed to say of the greatest of them that a share `q` of all is surely below it.
pub fn needed_for(q: f64) -> u64 {
    // A count that is too large for the type is one that nobody has.
    (WRONG.ln() / q.ln()).ceil() as u64
}

/// What can be said of a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile<T> {
    /// Nothing: there are too few.
    TooFew,
    /// It may lie among those that are greater than any value.
    Beyond,
    /// It is surely not above this.
    AtMost(T),
}

/// Of values from the least to the greatest, and so many that are greater than any: the one below which a share `q` of all surely is.
pub fn quantile<T: Copy>(sorted: &[T], greater: u64, q: f64) -> Quantile<T> {
    let n = sorted.len() as u64 + greater;
    if n < needed_for(q) {
        return Quantile::TooFew;
    }
    // Were the share up to a value smaller, more would lie above it but for chance: so many may, and it is still surely not.
    let more = cumulative(n, 1.0 - q).take_while(|probability| *probability <= WRONG).count();
    let place = usize::try_from(n).ok().and_then(|n| n.checked_sub(more));
    place.and_then(|place| sorted.get(place)).map_or(Quantile::Beyond, |value| Quantile::AtMost(*value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-4 * right.abs().max(1e-6)
    }

    #[test]
    fn bounds_are_those_of_the_tables() {
        // None of 214: the root of 0.05. Ten of a hundred: from tables of Clopper and Pearson, one side each.
        assert!(near(share_at_most(0, 214), 1.0 - 0.05f64.powf(1.0 / 214.0)));
        assert!((share_at_most(10, 100) - 0.1637).abs() < 1e-4, "{}", share_at_most(10, 100));
        assert!((share_at_least(10, 100) - 0.0553).abs() < 1e-4, "{}", share_at_least(10, 100));
        assert_eq!((share_at_least(0, 9), share_at_most(9, 9)), (0.0, 1.0));
        assert_eq!([0.95, 0.99, 0.999].map(needed_for), [59, 299, 2_995]);
    }

    #[test]
    fn a_quantile_is_said_only_where_there_are_enough() {
        let values: Vec<u32> = (0..2_995).collect();
        assert_eq!(quantile(&values[..2_994], 0, 0.999), Quantile::TooFew);
        assert_eq!(quantile(&values, 0, 0.999), Quantile::AtMost(2_994));
        assert_eq!(quantile(&values[..58], 0, 0.95), Quantile::TooFew);
        // Of 1,000 some 10 lie beyond the 99th of 100; that it is 4 or fewer is rarer than 5 in 100.
        assert_eq!(quantile(&values[..1_000], 0, 0.99), Quantile::AtMost(995));
        // What is greater than any value is one of the 1,000 all the same.
        assert_eq!(quantile(&values[..997], 3, 0.99), Quantile::AtMost(995));
        assert_eq!(quantile(&values[..995], 5, 0.99), Quantile::Beyond);
        assert_eq!(quantile(&values[..2_994], 1, 0.999), Quantile::Beyond);
    }

    proptest! {
        #[test]
        fn the_bounds_hold_the_share_that_was_seen_and_narrow(hits in 0u64..50, more in 1u64..2_000) {
            let n = hits + more;
            let seen = hits as f64 / n as f64;
            prop_assert!(share_at_least(hits, n) <= seen && seen <= share_at_most(hits, n));
            prop_assert!(share_at_most(hits, 2 * n) <= share_at_most(hits, n));
            prop_assert!(at_most(hits, n, share_at_most(hits, n)) <= 0.05 + 1e-9);
        }
    }
}
