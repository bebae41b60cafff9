//! The shapes that real ledgers have, each with its example under `config/shapes`: read from a real database, followed, and held against plain SQL.

#[path = "shapes/append_only.rs"]
mod append_only;
#[path = "shapes/bed.rs"]
mod bed;
#[path = "shapes/decimal_epochs.rs"]
mod decimal_epochs;
#[path = "shapes/fan_out.rs"]
mod fan_out;
#[path = "shapes/jobs.rs"]
mod jobs;
#[path = "shapes/mutable_row.rs"]
mod mutable_row;
#[path = "shapes/null_states.rs"]
mod null_states;
#[path = "shapes/plain.rs"]
mod plain;
#[path = "common/postgres.rs"]
mod postgres;
#[path = "shapes/watch.rs"]
mod watch;
