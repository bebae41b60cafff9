//! Notices that a configuration's files have changed.
//!
//! A checksum is polled, because a mounted configuration is swapped by a symbolic link, which file events tell badly.

use super::{
    Config, Faults, Loaded,
    interpolate::Environment,
    load::{FileDigest, attempt, digest, read},
    receipt::Receiver,
};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// A configuration's file, and what was last read of it and of its secrets' files.
///
/// It keeps digests, which are never shown: a weak secret could be guessed by one.
#[derive(Clone)]
pub struct Source {
    path: PathBuf,
    location: Option<String>,
    seen: BTreeMap<PathBuf, FileDigest>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("path", &self.path)
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// A source that has read nothing yet. `location` is the one given from outside, if any.
    pub fn new(path: impl Into<PathBuf>, location: Option<String>) -> Self {
        Self { path: path.into(), location, seen: BTreeMap::new() }
    }

    /// The configuration's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether any file is not what it was when it was last read. True before the first reading.
    pub fn is_changed(&self) -> bool {
        self.seen.is_empty() || self.seen.iter().any(|(file, seen)| digest(&read(file)) != *seen)
    }

    /// Loads what is there now, changed or not.
    ///
    /// # Errors
    /// All that is wrong with it. The caller keeps the configuration it has.
    pub fn reload(&mut self, env: Environment<'_>) -> Result<Loaded, Faults> {
        let attempt = attempt(&self.path, self.location.as_deref(), env);
        if attempt.result.is_ok() {
            self.seen.clear();
        }
        // A broken file does not tell its secrets' files: those of before are watched on.
        self.seen.extend(attempt.files);
        attempt.result
    }

    /// Loads what is there now, if it isn't what was read last. A bad file is reported once, not at each poll.
    pub fn reload_if_changed(&mut self, env: Environment<'_>) -> Option<Result<Loaded, Faults>> {
        self.is_changed().then(|| self.reload(env))
    }
}

/// What differs between two configurations and can't change while the process runs.
pub fn changes_needing_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let receivers = |config: &Config| -> Vec<_> {
        let listen = config
            .receivers
            .iter()
            .map(|(name, Receiver::Webhook(hook))| (name.clone(), hook.listen, hook.max_connections));
        listen.collect()
    };
    let mut changes = Vec::new();
    let mut note = |same: bool, what| {
        if !same {
            changes.push(what);
        }
    };
    note(old.location == new.location, "location");
    note(old.listeners == new.listeners, "listeners");
    note(old.store == new.store, "store");
    note(old.log == new.log, "log");
    note(old.grace == new.grace, "grace");
    note(receivers(old) == receivers(new), "receivers: names, listen, max_connections");
    changes
}
