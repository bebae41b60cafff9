//! A fixed offset for each route, so that a fleet of equal schedules doesn't send all at once.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// The offset of a route: at least zero, less than `spread`, in whole milliseconds.
///
/// It depends on nothing but the name and the spread, so it is the same after each restart and on each replica.
/// It is zero when `spread` is below a millisecond.
pub fn offset_for(route_name: &str, spread: Duration) -> Duration {
    let digest = Sha256::digest(route_name.as_bytes());
    let hash = digest.iter().take(8).fold(0_u64, |hash, byte| hash << 8 | u64::from(*byte));
    // The hash is a fraction of 2^64; that fraction of the spread is even over all names.
    let spread_ms = u64::try_from(spread.as_millis()).unwrap_or(u64::MAX);
    let offset_ms = (u128::from(hash) * u128::from(spread_ms)) >> 64;
    Duration::from_millis(u64::try_from(offset_ms).unwrap_or(u64::MAX))
}
