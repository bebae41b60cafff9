//! Everybody's flow through a ledger: what became of each accepted notification, followed by new rows alone.
//!
//! [`rows`] are what a reading gives, without their database.

pub mod rows;
