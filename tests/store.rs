//! The store's contract: one suite, run on SQLite and on a real PostgreSQL.

#[path = "common/postgres.rs"]
mod postgres_server;
#[path = "store/support.rs"]
mod support;

#[path = "store/history.rs"]
mod history;
#[path = "store/keeping.rs"]
mod keeping;
#[path = "store/planning.rs"]
mod planning;
