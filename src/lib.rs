//! delivery-canary: knowing, from outside, whether a notification service really delivers.
//!
//! The rooms of the house, from the ground up. A module knows only what stands below it;
//! `tests/architecture.rs` holds these arrows.
//!
//! * [`domain`]: pure. Canaries, evidence, verdicts, schedules. No I/O, no clock, no randomness.
//! * [`clock`]: what time it is, by the store's clock where it has one.
//! * [`simulator`]: a small notification service with faults on demand. It knows nothing of the monitor.
//! * [`catalog`]: every metric family: name, kind, labels, help, and whether it may be absent.
//! * [`dashboards`]: the dashboards for Grafana, generated.
//! * [`trust`]: whom our TLS clients trust.
//! * [`config`]: typed configuration: parse, interpolate, validate, with file, line and column.
//! * [`store`]: the monitor's own durable state, on SQLite or PostgreSQL.
//! * [`acceptance`]: how a canary is submitted.
//! * [`receipt`]: how a canary is received and its content checked.
//! * [`ledger`]: how the target's attempt ledger is read.
//! * [`alerts`]: from the configuration: rules, their tests, the Alertmanager's tree, runbooks, and what each alert costs.
//! * [`monitor`]: the loops, and the snapshot that is all the outside may see of them.
//! * [`exposition`]: `/metrics` and the shape of the logs.
//! * [`health`]: the monitor's own `/startup`, `/ready` and `/live`.
//! * [`cli`]: a file a command; wires the rest.

#![forbid(unsafe_code)]

pub mod acceptance;
pub mod alerts;
pub mod catalog;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dashboards;
pub mod domain;
pub mod exposition;
pub mod health;
pub mod ledger;
pub mod monitor;
pub mod receipt;
pub mod simulator;
pub mod store;
pub mod trust;
