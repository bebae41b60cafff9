//! The follower's core against a model ledger, and the trials that concern it.

mod accounting;
mod behind;
mod canaries;
mod keys;
mod model;
mod plan;
mod properties;
mod runner;
mod single;
mod time;
