//! The simulator, seen from outside: over HTTP, by its webhooks and by its ledger, on SQLite and on PostgreSQL.

mod acceptance_faults;
mod delivery_faults;
mod documented;
mod ledgers;
mod service;
mod support;

use crate::common::postgres;
