//! Typed configuration: gather, parse, interpolate, validate; every fault with file, line and column.
//!
//! [`load`] is the way in. It reads the file and the secrets' files, parses the YAML to a tree that knows where everything
//! stands ([`tree`]), puts the environment's variables into scalars ([`interpolate`]), holds the tree against the shape that
//! the types' JSON schema gives ([`walk`], [`shape`]), decodes it piece by piece ([`draft`]), and checks what no type can say.

pub mod acceptance;
pub mod alerts;
pub mod draft;
pub mod fault;
mod interpolate;
pub mod ledger;
mod load;
pub mod model;
pub mod near;
pub mod receipt;
pub mod reference;
mod report;
pub mod scalar;
pub mod shape;
pub mod tree;
pub mod validate;
mod value;
mod walk;
pub mod watch;

pub use fault::{Fault, Faults};
pub use load::{ConfigHash, Loaded, load, load_at};
pub use model::{Config, Route};
pub use report::Places;
