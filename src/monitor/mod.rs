//! The loops, and all that the outside may see of them.

pub mod counters;
pub mod follow;
pub mod progress;
pub mod snapshot;
pub mod stages;
pub mod steady;
pub mod terminal;
