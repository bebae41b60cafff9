//! Settings proposed from what was measured: each with its reason and the numbers it stands on, and none that the data can't carry.
//!
//! Pure: what was seen goes in, advice comes out.

mod advice;
pub mod bounds;
mod observed;
mod rounding;
mod yaml;

pub use advice::{Accepted, Advice, Given, advise};
pub use observed::{Incident, Observed, Seen, Sent};
pub use yaml::{Suggested, document};
