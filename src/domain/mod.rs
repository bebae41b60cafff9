//! The pure core. Nothing here does I/O, reads a clock or draws a random number; time comes in as a value.

pub mod accounting;
pub mod audit;
pub mod canary;
pub mod disagreement;
pub mod disclosure;
pub mod elsewhere;
pub mod evidence;
pub mod failure_evidence;
pub mod flow;
pub mod following;
pub mod outcome;
pub mod pending;
pub mod route;
pub mod schedule;
pub mod traceparent;
pub mod verdict;
pub mod watch;
