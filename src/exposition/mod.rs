//! What the outside reads: `/metrics`, and the shape of the logs.

pub mod bounded;
pub mod collector;
pub mod logs;
mod page;
pub mod server;
