//! What keeps the number of series small: the exported windows and the bounds of histograms.

use super::labels::Window;
use std::time::Duration;

/// The most series that a route may have with one location, all labels, stages and a ledger's pending included.
pub const SERIES_PER_ROUTE: usize = 100;

/// The windows of `delivery_canary_window`. The last day is in `delivery_canary_verdicts`, and whether a route fails now is in the
/// evidence, so the one window that nothing else gives is that of the objective.
pub const CANARY_WINDOWS: &[Window] = &[Window::Month];

/// The finite bounds of `delivery_ledger_read_seconds`.
pub const READ_BOUNDS_SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// How many finite bounds a stage of `delivery_canary_stage_seconds` has.
pub const STAGE_BOUNDS: usize = 2;

/// The finite bounds of a route's stages, in seconds: a tenth of the deadline, which says whether it has become slower, and a
/// quarter above it, so that what comes at the deadline is below the top finite bound.
pub fn stage_bounds(deadline: Duration) -> [f64; STAGE_BOUNDS] {
    let seconds = deadline.as_secs_f64();
    [seconds / 10.0, seconds * 1.25]
}
