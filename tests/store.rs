//! The store's contract: one suite, run on SQLite and on a real PostgreSQL.

pub mod support;

mod audit;
mod clock;
mod crash;
mod following;
mod history;
mod keeping;
mod outage;
mod planning;
mod schema;
mod windows;

use crate::common::postgres as postgres_server;
