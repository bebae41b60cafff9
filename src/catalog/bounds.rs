//! What keeps the number of series small: the exported windows and the bounds of histograms.

use super::labels::Window;
use crate::domain::verdict::Class;
use std::time::Duration;

/// The most series that a route may have with one location while all is well, all labels, stages and a followed ledger included.
pub const SERIES_PER_ROUTE: usize = 100;

/// The most series that it may have while it fails in every way at once, with everything configured that can be.
pub const SERIES_AT_WORST: usize = 127;

/// The windows of `delivery_canary_window`. The last day is in `delivery_canary_verdicts`, and whether a route fails now is in the
/// evidence, so the one window that nothing else gives is that of the objective.
pub const CANARY_WINDOWS: &[Window] = &[Window::Month];

/// The window of `delivery_canary_controls`: long enough for some canaries of each arm, and an incident's own.
pub const CONTROL_WINDOW: Window = Window::Hour;

/// The classes of `delivery_canary_controls`. What is neither says nothing about whose fault it is.
pub const ARM_CLASSES: [Class; 2] = [Class::Good, Class::Bad];

/// The windows of what real traffic came to: those of the pairs that the budget burns by.
pub const LEDGER_WINDOWS: &[Window] = &[
    Window::FiveMinutes,
    Window::HalfHour,
    Window::Hour,
    Window::TwoHours,
    Window::SixHours,
    Window::Day,
    Window::ThreeDays,
];

/// The window of `delivery_ledger_window_notifications`, over which suppression surges.
pub const DISPOSITION_WINDOW: Window = Window::SixHours;

/// The window of `delivery_ledger_window_rejected`, over which an address list rots.
pub const CAUSE_WINDOW: Window = Window::Day;

/// The window of `delivery_ledger_window_attempts`, over which retries surge.
pub const ATTEMPT_WINDOW: Window = Window::HalfHour;

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
