//! The shapes that real ledgers have, each with its example under `config/shapes`: read from a real database, followed, and held against plain SQL.

mod append_only;
pub mod bed;
mod decimal_epochs;
mod fan_out;
pub mod jobs;
mod mutable_row;
mod null_states;
pub mod plain;
mod two_tables;
pub mod watch;

use crate::common::postgres;
