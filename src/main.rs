//! The entry point: parse arguments, hand over, exit code.

use clap::Parser;
use delivery_canary::cli::{Cli, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(Cli::parse())
}
