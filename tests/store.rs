//! The store's contract: one suite, run on SQLite and on a real PostgreSQL.

#[path = "common/postgres.rs"]
mod postgres_server;
#[path = "store/support.rs"]
mod support;

#[path = "store/audit.rs"]
mod audit;
#[path = "store/clock.rs"]
mod clock;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/following.rs"]
mod following;
#[path = "store/history.rs"]
mod history;
#[path = "store/keeping.rs"]
mod keeping;
#[path = "store/outage.rs"]
mod outage;
#[path = "store/planning.rs"]
mod planning;
#[path = "store/schema.rs"]
mod schema;
#[path = "store/windows.rs"]
mod windows;
