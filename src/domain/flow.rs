//! Everybody's flow through a ledger: what became of each accepted notification, followed by new rows alone.
//!
//! * [`rows`] are what a reading gives, without their database.
//! * [`follow`] takes them, in passes, and says what has to be written down; [`settings`] is what it is told once.
//! * [`durable`] is what is kept between passes, in [`cells`] and single units.
//! * [`time`] says what time it is for it, by clocks that may be wrong.
//! * [`figures`] are what can be told at any moment; a [`key`] says which unit is meant.
//!
//! A row is *open* as long as commits may still come late around it: it is read again in every pass, and only remembered. Once it is *closed* it is
//! folded: into its unit as long as that is pending, then into cells. So a pass costs what is new, and a restart goes on from what was written
//! by reading the open rows again.

mod behind;
pub mod cells;
pub mod durable;
pub mod figures;
pub mod follow;
pub mod key;
mod open;
pub mod rows;
pub mod settings;
mod settle;
mod strays;
pub mod time;
mod unit;

pub(in crate::domain) use unit::{from_code, to_code};
