//! The file of an SQLite store, and whether it still is the one that was opened.

use super::fault::Fault;
use std::{fs, io, path::PathBuf};

/// A file that was opened. Whoever has it open goes on writing into it when it is removed, and nothing of that stays.
#[derive(Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    identity: Identity,
}

type Identity = (u64, u64);

#[cfg(unix)]
fn identity(path: &PathBuf) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &PathBuf) -> io::Result<Identity> {
    fs::metadata(path).map(|_| (0, 0))
}

impl OpenedFile {
    /// The file that is there now.
    pub fn at(path: PathBuf) -> io::Result<Self> {
        identity(&path).map(|identity| Self { path, identity })
    }

    /// That the same file is still there.
    pub fn check(&self) -> Result<(), Fault> {
        let path = self.path.display();
        match identity(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            Ok(_) => Err(Fault::Gone(format!(
                "another file was put in the place of {path}: start again to use it"
            ))),
            Err(error) => Err(Fault::Gone(format!(
                "its file {path} is gone ({error}): put it back, or start again to make a new one"
            ))),
        }
    }
}
