//! The program under test, run once.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const MINIMAL: &str = include_str!("../../config/minimal.yaml");

/// What the configurations of these tests read from the environment.
pub const SECRETS: [(&str, &str); 2] =
    [("TOKEN_SECRET", "0123456789abcdef0123456789abcdef"), ("API_TOKEN", "of-nobody-0123456789")];

/// What a run came to.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// The output of a run that ended so.
    pub fn ended(self, code: i32) -> String {
        assert_eq!(self.code, code, "output:\n{}\nerrors:\n{}", self.out, self.err);
        self.out
    }
}

/// Runs the program with these arguments and variables.
pub fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_delivery-canary"))
        .args(arguments)
        .envs(SECRETS)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// The least configuration that works, with these routes of the channel `webhook` and these ledgers, in a file of this folder.
pub fn configuration(folder: &Path, routes: &[&str], ledgers: &str) -> PathBuf {
    let (head, route) = MINIMAL.split_once("routes:\n").expect("it has routes");
    let store = format!("path: {}", folder.join("canary.sqlite").display());
    let mut text = head.replace("path: canary.sqlite", &store) + "routes:\n";
    for name in routes {
        text += &route.replace("name: receipts", &format!("name: {name}"));
    }
    let file = folder.join("canary.yaml");
    std::fs::write(&file, text + ledgers).expect("the file is written");
    file
}
