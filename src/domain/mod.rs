//! The pure core. Nothing here does I/O, reads a clock or draws a random number; time comes in as a value.

pub mod schedule;
