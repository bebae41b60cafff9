//! The program under test, run once on a configuration of its own.

use super::support::Place;
use delivery_canary::config::model::StoreConfig;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
};
use tempfile::TempDir;

const MINIMAL: &str = include_str!("../../config/minimal.yaml");

/// What a run came to.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The output of a run that ended so.
    pub fn ended(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "output:\n{}\nerrors:\n{}", self.out, self.err);
        self.out
    }

    /// What a run that was refused says.
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "output:\n{}\nerrors:\n{}", self.out, self.err);
        assert_eq!(self.out, "", "it was refused, and prints nothing");
        self.err
    }

    /// The JSON of a run that ended so.
    pub fn json(self, code: i32) -> serde_json::Value {
        let out = self.ended(code);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// A configuration, in a folder of its own.
pub struct Configured {
    _folder: TempDir,
    pub file: PathBuf,
}

/// Runs the program with these arguments on this configuration.
pub fn run(config: &Configured, arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_delivery-canary"))
        .args(arguments)
        .arg("--config")
        .arg(&config.file)
        .env("TOKEN_SECRET", "0123456789abcdef0123456789abcdef")
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The least configuration that works, on this store, with these further lines of its route, which are indented by four, and at its end.
pub fn configure(place: &Place, of_route: &str, rest: &str) -> Configured {
    let store = match &place.config {
        StoreConfig::Sqlite(config) => format!("  sqlite:\n    path: {}\n", config.path.display()),
        StoreConfig::Postgres(config) => format!("  postgres:\n    url: {}\n", config.url.expose()),
    };
    let text = edit(MINIMAL, "  sqlite:\n    path: canary.sqlite\n", &store);
    let text = edit(&text, "    hourly_cap: 80\n", &format!("    hourly_cap: 80\n{of_route}"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("canary.yaml");
    std::fs::write(&file, text + rest).expect("the file is written");
    Configured { _folder: folder, file }
}

/// Replaces what must be there.
pub fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "`{from}` isn't there to be replaced");
    text.replacen(from, to, 1)
}
