//! What other settings would have made of the past: the pages that canaries would have come to, beside those of the settings in force.
//!
//! Pure: judgements go in, in the order in which they were given, and pages come out. They are weighed by the domain's own failure evidence,
//! folded as the monitor folds it: a canary that is judged late, or anew, changes all that comes after it.

mod compare;
mod pages;
mod replay;

pub use compare::{Change, Difference, compare};
pub use pages::{Alarms, HOLD, Page, Settings};
pub use replay::{Judged, Place, Replay};
