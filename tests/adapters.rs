//! Tests of one room with the real thing beside it: databases, poolers, receivers, Prometheus and its tools.

mod acceptance;
mod alert_commands;
mod alerts;
mod common;
mod harmless;
mod health;
mod leads;
mod ledger;
mod ledger_commands;
mod receipt;
mod shapes;
mod simulator;
mod store;
