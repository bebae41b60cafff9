//! Who serves on an SQLite store: one process at a time, by a lock that the system frees when the process ends, however it ends.

use super::StoreError;
use crate::config::model::{SqliteStore, StoreConfig};
use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// Times that a lock is asked for before it counts as held by a process that serves: a command that only asks holds it for a moment.
const TRIES: u32 = 10;

/// The wait between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(30);

/// The right to serve on a store, held until this is dropped or the process ends.
#[derive(Debug)]
pub struct Claim {
    /// The lock is on the open file. SQLite has locks of its own on its files, so it is a file beside them.
    _locked: Option<File>,
}

/// Claims a store for a process that serves. Any number of processes may serve on PostgreSQL; the file must be there.
///
/// # Errors
/// [`StoreError::Refused`] when another process serves on the same file, or the lock can't be made.
pub fn claim(config: &StoreConfig) -> Result<Claim, StoreError> {
    let StoreConfig::Sqlite(sqlite) = config else { return Ok(Claim { _locked: None }) };
    let refused = |reason: String| StoreError::Refused(format!("{}: {reason}", sqlite.path.display()));
    let beside = beside(&sqlite.path);
    let unusable =
        |error: std::io::Error| refused(format!("the lock {} can't be used: {error}", beside.display()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&beside).map_err(unusable)?;
    for left in (0..TRIES).rev() {
        match file.try_lock() {
            Ok(()) => return Ok(Claim { _locked: Some(file) }),
            Err(TryLockError::WouldBlock) if left > 0 => thread::sleep(BETWEEN_TRIES),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
    }
    Err(refused(format!(
        "another process serves on this file (it holds the lock {}); stop it first, give this one a file of its own, or, \
         for replicas, let all of them use one PostgreSQL store (`store.postgres.url`)",
        beside.display()
    )))
}

/// Whether a process serves on an SQLite store now; nothing where it can't be known so.
pub fn is_served(config: &SqliteStore) -> Option<bool> {
    match File::open(beside(&config.path)) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

/// The lock's file: beside the database itself, by whatever name it is reached.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).into_os_string();
    name.push(".serving");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(path: PathBuf) -> SqliteStore {
        SqliteStore { path }
    }

    #[test]
    fn one_claim_at_a_time_by_whatever_name_and_free_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("monitor.db");
        File::create(&path).unwrap();
        let other_name = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &other_name).unwrap();
        assert_eq!(is_served(&store(path.clone())), Some(false));
        let first = claim(&StoreConfig::Sqlite(store(path.clone()))).unwrap();
        assert_eq!(is_served(&store(other_name.clone())), Some(true));
        let second = claim(&StoreConfig::Sqlite(store(other_name.clone()))).unwrap_err().to_string();
        assert!(second.contains("another process serves") && second.contains("PostgreSQL"), "{second}");
        drop(first);
        assert_eq!(is_served(&store(path)), Some(false));
        claim(&StoreConfig::Sqlite(store(other_name))).unwrap();
    }
}
