//! The monitor's own `/startup`, `/ready` and `/live`: about this process and nothing else.
//!
//! They answer on a port of their own from a thread of their own, also when every worker of the program is busy.

mod report;
mod server;

pub use report::{Probe, Report, Startup, judge};
pub use server::{HealthServer, HealthThread};
