//! The processor time of the server and of this process, to the nanosecond.

use anyhow::{Context, Result};
use std::{collections::HashMap, fs, path::Path, time::Duration};

/// What each process or thread that runs now took so far, by its number.
pub struct Taken(HashMap<u32, Duration>);

impl Taken {
    /// What was taken since. What ended meanwhile is left out.
    pub fn since(&self, before: &Self) -> Duration {
        let earlier = |number| before.0.get(number).copied().unwrap_or_default();
        self.0.iter().map(|(number, taken)| taken.saturating_sub(earlier(number))).sum()
    }
}

/// The processes of a server.
pub struct Server {
    parent: u32,
}

impl Server {
    /// The server whose first process is this one.
    pub const fn new(parent: u32) -> Self {
        Self { parent }
    }

    /// What all its processes took so far.
    pub fn cpu(&self) -> Result<Taken> {
        taken(Path::new("/proc"), |folder| {
            // One that ends meanwhile is left out.
            let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
            parent.and_then(|word| word.parse().ok()) == Some(self.parent)
        })
    }
}

/// What the threads of this process took so far.
pub fn own_cpu() -> Result<Taken> {
    taken(Path::new("/proc/self/task"), |_| true)
}

fn taken(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Taken> {
    let mut all = HashMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{} can't be read", folder.display()))? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number
            && is_wanted(&entry.path())
        {
            let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
            let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
            all.insert(number, Duration::from_nanos(nanos));
        }
    }
    Ok(Taken(all))
}
