//! The follower's core against a model ledger, and the trials that concern it.

#[path = "flow/accounting.rs"]
mod accounting;
#[path = "flow/behind.rs"]
mod behind;
#[path = "flow/canaries.rs"]
mod canaries;
#[path = "flow/keys.rs"]
mod keys;
#[path = "flow/model.rs"]
mod model;
#[path = "flow/plan.rs"]
mod plan;
#[path = "flow/properties.rs"]
mod properties;
#[path = "flow/runner.rs"]
mod runner;
#[path = "flow/single.rs"]
mod single;
