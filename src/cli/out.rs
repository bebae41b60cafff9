//! Standard output, which may be closed by whoever has seen enough of it.

use std::{
    fmt,
    io::{self, ErrorKind, Write as _},
    process,
};

/// Prints a line.
macro_rules! say {
    () => { $crate::cli::out::put(format_args!("\n")) };
    ($($what:tt)*) => { $crate::cli::out::put(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints text.
macro_rules! tell {
    ($($what:tt)*) => { $crate::cli::out::put(format_args!($($what)*)) };
}

pub(crate) use {say, tell};

/// Writes to standard output. A reader that is gone, such as `head`, wants no more: the program ends as if it had read all.
pub fn put(what: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    match out.write_fmt(what).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(i32::from(super::exit::OK)),
        Err(error) => {
            eprintln!("error: standard output can't be written: {error}");
            process::exit(i32::from(super::exit::UNAVAILABLE));
        }
    }
}
