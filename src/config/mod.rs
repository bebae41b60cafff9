//! Typed configuration: parse, then interpolate, then validate; every fault with file, line and column.

pub mod acceptance;
pub mod ledger;
pub mod model;
pub mod receipt;
pub mod scalar;

pub use model::{Config, Route};
