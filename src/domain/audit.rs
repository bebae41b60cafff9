//! The audit of a ledger's history: a bounded sample of recent notifications is read again at growing ages, and held against what was seen.
//!
//! * [`compare`] says how one notification's attempts changed, and which changes history does not allow.
//! * [`sample`] chooses what is looked at, and when.
//!
//! What is missing or other than before may be an older view of ours, such as that of a replica that is behind: it is a finding only once a
//! second reading, some time later, shows the same.

pub mod compare;
pub mod sample;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
