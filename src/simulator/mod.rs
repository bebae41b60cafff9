//! A small, honest notification service with faults on demand: the demo and the tests run against it.
//!
//! It accepts over HTTP under an idempotency key, keeps an append-only ledger in SQLite or PostgreSQL, and its workers
//! hand messages to a provider that really posts webhooks. It knows nothing of the monitor. See `docs/simulator.md`.

mod acceptance;
mod admin;
mod assembly;
mod backoff;
mod client;
mod clock;
mod controls;
mod delivery;
mod dispatcher;
mod fault;
mod faults;
mod gate;
mod http;
mod ledger;
mod message;
mod options;
mod probes;
mod provider;
mod proxy;
mod render;
mod running;
mod signature;
mod sink;
mod statistics;
mod submission;
mod traffic;

pub use controls::ControlError;
pub use fault::{Fault, FaultKind, FaultOrder, FaultParams, MalformedKind, UnknownFault};
pub use faults::ArmedFault;
pub use ledger::{LedgerCounts, LedgerError, ReaderAddress};
pub use message::Channel;
pub use options::{LedgerOptions, OptionsError, SimulatorOptions, TrafficOptions, TrafficRoute};
pub use running::{Addresses, Simulator, SimulatorError};
pub use signature::{SecretError, SigningSecret};
pub use statistics::{KeyEffects, Totals};
