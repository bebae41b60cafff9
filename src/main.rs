//! The entry point: parse arguments, hand over, exit code.

fn main() {}
