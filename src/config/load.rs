//! From a file to a configuration: gather, parse, interpolate, walk, decode, check.

use super::{
    Config, Fault, Faults,
    acceptance::Acceptance,
    draft,
    interpolate::{Environment, Unresolved, interpolate},
    ledger::LedgerDatabase,
    model::StoreConfig,
    receipt::Receiver,
    report::{At, Places, Report},
    shape,
    tree::{self, MAX_BYTES, Mark},
    validate,
    walk::Walker,
};
use chrono::Utc;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
};

/// Largest file of a secret, in bytes.
const MAX_SECRET: usize = 64 << 10;

/// A configuration that has no fault.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Its hash.
    pub hash: ConfigHash,
    /// What is allowed but hardly meant.
    pub warnings: Vec<Fault>,
    /// Where everything stands.
    pub places: Places,
}

/// A hash of all that a configuration says but its secrets and what each process has of its own: its location, its listeners and
/// their public addresses, its store.
///
/// Secrets are left out because the hash is shown on `/metrics`, where it would let a weak one be guessed, and because rules
/// are made from the configuration where its secrets are not known. What each process has of its own is left out because rules serve them all.
/// It has 48 bits, so that it is exact as a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigHash(u64);

impl ConfigHash {
    /// The hash of a configuration.
    pub fn of(config: &Config) -> Self {
        let mut value = serde_json::to_value(config).unwrap_or_default();
        for own in ["location", "listeners", "store"] {
            value[own].take();
        }
        for receiver in value["receivers"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            let Some(webhook) = receiver.get_mut("webhook") else { continue };
            for own in ["listen", "public_url"] {
                webhook[own].take();
            }
        }
        let digest = Sha256::digest(value.to_string().as_bytes());
        Self(digest.iter().take(6).fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    /// The hash as a number below 2^48.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ConfigHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// Loads a configuration.
///
/// # Errors
/// All that is wrong with it, each with its place.
pub fn load(path: &Path, env: Environment<'_>) -> Result<Loaded, Faults> {
    load_at(path, None, env)
}

/// Loads a configuration for a location that was given from outside, which the file's own gives way to.
///
/// # Errors
/// All that is wrong with it, each with its place.
pub fn load_at(path: &Path, location: Option<&str>, env: Environment<'_>) -> Result<Loaded, Faults> {
    attempt(path, location, env).result
}

/// What came of loading, and the digest of each file as it was read, the secrets' files too.
pub(super) struct Attempt {
    pub result: Result<Loaded, Faults>,
    pub files: BTreeMap<PathBuf, FileDigest>,
}

/// The SHA-256 of a file's content; none when it can't be read.
pub(super) type FileDigest = Option<[u8; 32]>;

/// The digest of a file, of as much of it as a configuration may have.
pub(super) fn digest(content: &std::io::Result<Vec<u8>>) -> FileDigest {
    content.as_ref().ok().map(|bytes| Sha256::digest(bytes).into())
}

/// Reads a file up to one byte beyond its limit.
pub(super) fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A pipe or a device would be waited for, perhaps for ever.
    if !fs::metadata(file)?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    fs::File::open(file)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn attempt(path: &Path, location: Option<&str>, env: Environment<'_>) -> Attempt {
    let mut report = Report::new(path.to_path_buf());
    let mut files = BTreeMap::new();
    let config = resolve(path, location, env, &mut report, &mut files);
    let (faults, warnings, places) = report.into_parts();
    let result = match config {
        Some((config, hash)) if faults.is_empty() => {
            let warnings = Faults::new(warnings).into_vec();
            Ok(Loaded { hash, config, warnings, places })
        }
        _ => Err(Faults::new(faults)),
    };
    Attempt { result, files }
}

fn resolve(
    path: &Path,
    location: Option<&str>,
    env: Environment<'_>,
    report: &mut Report,
    files: &mut BTreeMap<PathBuf, FileDigest>,
) -> Option<(Config, ConfigHash)> {
    let content = read(path);
    files.insert(path.to_path_buf(), digest(&content));
    let text = text(content, report)?;
    let (root, complaints) = tree::parse(&text);
    for complaint in complaints {
        report.fault_at(complaint.mark, complaint.message, None, complaint.hint);
    }
    let mut root = root?;
    let mut unresolved = Vec::new();
    interpolate(&mut root, env, &mut unresolved);
    let shape = match shape::root() {
        Ok(shape) => shape,
        Err(error) => {
            report.fault_of_file(format!("the program's own schema can't be read: {error}"), "report this");
            return None;
        }
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut secrets = |file: &str| {
        let file = folder.join(file);
        let content = read(&file);
        files.insert(file.clone(), digest(&content));
        secret(&file, content)
    };
    let mut walker =
        Walker { report, read_secret: &mut secrets, unsound: BTreeSet::new(), secrets: BTreeSet::new() };
    let mut value = walker.walk(shape, &root);
    let Walker { unsound, secrets, .. } = walker;
    for Unresolved { mark, problem } in unresolved {
        report.fault_at(mark, problem.message(), None, problem.hint(secrets.contains(&mark)));
    }
    if let (Some(location), Some(map)) = (location, value.as_object_mut()) {
        map.insert("location".into(), location.into());
    }
    let whole = value.clone();
    let draft = draft::decode(value, &unsound, report);
    validate::check(&draft, Utc::now(), report);
    if !report.is_sound() {
        return None;
    }
    match serde_json::from_value::<Config>(whole) {
        Ok(mut config) => {
            // Of the paths as they are written: the same file has the same hash wherever it lies.
            let hash = ConfigHash::of(&config);
            paths_mut(&mut config).into_iter().for_each(|path| *path = folder.join(&path));
            Some((config, hash))
        }
        Err(_) => {
            report.fault(&At::root(), "this configuration can't be used", "see docs/configuration.md");
            None
        }
    }
}

fn text(content: std::io::Result<Vec<u8>>, report: &mut Report) -> Option<String> {
    let bytes = match content {
        Ok(bytes) => bytes,
        Err(error) => {
            report.fault_of_file(format!("can't be read: {error}"), "check the path and its permissions");
            return None;
        }
    };
    if bytes.len() > MAX_BYTES {
        let message = format!("larger than {MAX_BYTES} bytes; nothing else of it was checked");
        report.fault_of_file(message, "split the routes over several monitors");
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let before =
                String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let count = |n| u32::try_from(n).unwrap_or(u32::MAX);
            let mark = Mark { line: count(line), column: count(column) };
            report.fault_at(mark, "this is not UTF-8", None, "save the file as UTF-8");
            None
        }
    }
}

/// A secret from its file's content. One line feed at its end is dropped: editors and `echo` put it there.
fn secret(file: &Path, content: std::io::Result<Vec<u8>>) -> Result<String, String> {
    let name = file.display();
    let bytes = content.map_err(|error| format!("the secret's file `{name}` can't be read: {error}"))?;
    if bytes.len() > MAX_SECRET {
        return Err(format!("the secret's file `{name}` is larger than {MAX_SECRET} bytes"));
    }
    let mut text =
        String::from_utf8(bytes).map_err(|_| format!("the secret's file `{name}` is not UTF-8"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.is_empty() {
        return Err(format!("the secret's file `{name}` is empty"));
    }
    Ok(text)
}

/// All paths of a configuration. Relative ones count from the configuration's folder.
fn paths_mut(config: &mut Config) -> Vec<&mut PathBuf> {
    let mut paths = Vec::new();
    if let StoreConfig::Sqlite(store) = &mut config.store {
        paths.push(&mut store.path);
    }
    for ledger in config.ledgers.values_mut() {
        if let LedgerDatabase::Sqlite(ledger) = &mut ledger.database {
            paths.push(&mut ledger.path);
        }
    }
    for Acceptance::Http(http) in config.acceptances.values_mut() {
        paths.extend(&mut http.ca_file);
    }
    for Receiver::Webhook(webhook) in config.receivers.values_mut() {
        paths.extend(&mut webhook.ca_file);
    }
    paths
}
