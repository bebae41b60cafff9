//! The simulator, seen from outside: over HTTP, by its webhooks and by its ledger, on SQLite and on PostgreSQL.

#[path = "simulator/acceptance_faults.rs"]
mod acceptance_faults;
#[path = "simulator/delivery_faults.rs"]
mod delivery_faults;
#[path = "simulator/documented.rs"]
mod documented;
#[path = "simulator/ledgers.rs"]
mod ledgers;
#[path = "common/postgres.rs"]
mod postgres;
#[path = "simulator/service.rs"]
mod service;
#[path = "simulator/support.rs"]
mod support;
