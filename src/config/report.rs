//! Where faults are collected while a configuration is read.

use super::{
    fault::{Fault, shown},
    interpolate::is_bare_reference,
    tree::{Mark, Scalar},
    value::{Kind, kind},
};
use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Most faults that are kept. A file with more is not a configuration.
const MOST_FAULTS: usize = 1000;

/// The address of a value: a JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(String);

impl At {
    /// The configuration itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The value of this key.
    pub fn key(&self, key: impl fmt::Display) -> Self {
        Self(format!("{}/{}", self.0, key.to_string().replace('~', "~0").replace('/', "~1")))
    }

    /// The values of these keys, each below the one before.
    pub fn keys(&self, keys: &[&str]) -> Self {
        keys.iter().fold(self.clone(), |at, key| at.key(key))
    }

    /// The key of this value itself, where it was chosen freely. No JSON pointer has `~k`.
    pub fn name(&self) -> Self {
        Self(format!("{}/~k", self.0))
    }

    /// The address around it.
    pub fn parent(&self) -> Option<Self> {
        self.0.rfind('/').map(|end| Self(self.0[..end].to_owned()))
    }
}

struct Place {
    mark: Mark,
    shown: Option<String>,
}

/// The faults and warnings so far, and where every value stands.
pub struct Report {
    file: PathBuf,
    places: BTreeMap<At, Place>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl Report {
    /// An empty report on a file.
    pub fn new(file: PathBuf) -> Self {
        Self { file, places: BTreeMap::new(), faults: Vec::new(), warnings: Vec::new() }
    }

    /// Notes where a value stands, and what may be shown of it.
    pub fn place(&mut self, at: &At, mark: Mark, shown: Option<String>) {
        self.places.insert(at.clone(), Place { mark, shown });
    }

    /// Shows nothing more of the value at this address: it looks like a credential.
    pub fn conceal(&mut self, at: &At) {
        if let Some(place) = self.places.get_mut(at) {
            place.shown = Some("[secret]".into());
        }
    }

    /// A fault at an address. Where nothing is written there, it is reported at the nearest value around it.
    pub fn fault(&mut self, at: &At, message: impl Into<String>, hint: impl Into<String>) {
        let fault = self.addressed(at, message.into(), hint.into());
        self.add(fault);
    }

    /// Whether so many faults were found that no more are kept.
    pub fn is_full(&self) -> bool {
        self.faults.len() >= MOST_FAULTS
    }

    fn add(&mut self, fault: Fault) {
        if !self.is_full() {
            self.faults.push(fault);
        }
    }

    /// A warning at an address.
    pub fn warn(&mut self, at: &At, message: impl Into<String>, hint: impl Into<String>) {
        let fault = self.addressed(at, message.into(), hint.into());
        self.warnings.push(fault);
    }

    /// A fault at a place of the file.
    pub fn fault_at(
        &mut self,
        mark: Mark,
        message: impl Into<String>,
        value: Option<String>,
        hint: impl Into<String>,
    ) {
        let fault = self.marked(Some(mark), message.into(), value, hint.into());
        self.add(fault);
    }

    /// A fault of the file as a whole.
    pub fn fault_of_file(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        let fault = self.marked(None, message.into(), None, hint.into());
        self.add(fault);
    }

    /// The line on which something stands, for a message about two places.
    pub fn line(&self, at: &At) -> u32 {
        self.nearest(at).map_or(0, |place| place.mark.line)
    }

    /// Whether something is written at this address.
    pub fn is_written(&self, at: &At) -> bool {
        self.places.contains_key(at)
    }

    /// Whether nothing is wrong so far.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// The faults, the warnings, and where everything stands.
    pub fn into_parts(self) -> (Vec<Fault>, Vec<Fault>, Places) {
        let marks = self.places.into_iter().map(|(at, place)| (at, place.mark)).collect();
        (self.faults, self.warnings, Places { file: self.file, marks })
    }

    fn nearest(&self, at: &At) -> Option<&Place> {
        let mut at = at.clone();
        loop {
            match self.places.get(&at) {
                Some(place) => return Some(place),
                None => at = at.parent()?,
            }
        }
    }

    fn addressed(&self, at: &At, message: String, hint: String) -> Fault {
        let mark = self.nearest(at).map(|place| place.mark);
        let value = self.places.get(at).and_then(|place| place.shown.clone());
        self.marked(mark, message, value, hint)
    }

    fn marked(&self, mark: Option<Mark>, message: String, value: Option<String>, hint: String) -> Fault {
        Fault {
            file: self.file.clone(),
            line: mark.map_or(0, |mark| mark.line),
            column: mark.map_or(0, |mark| mark.column),
            message,
            value,
            hint: Some(hint).filter(|hint| !hint.is_empty()),
        }
    }
}

/// Where everything of a configuration stands, for faults that only others can find.
#[derive(Clone, Debug)]
pub struct Places {
    file: PathBuf,
    marks: BTreeMap<At, Mark>,
}

impl Places {
    /// A fault at the value of these keys, each below the one before; where nothing is written there, at the nearest value
    /// around it. It shows nothing of the value.
    pub fn fault(&self, keys: &[&str], message: String, hint: String) -> Fault {
        let mut at = Some(At::root().keys(keys));
        let mut mark = None;
        while let Some(here) = at.filter(|_| mark.is_none()) {
            mark = self.marks.get(&here).copied();
            at = here.parent();
        }
        Fault {
            file: self.file.clone(),
            line: mark.map_or(0, |mark| mark.line),
            column: mark.map_or(0, |mark| mark.column),
            message,
            value: None,
            hint: Some(hint),
        }
    }
}

/// What may be shown of a scalar that is no secret: it, as it is written.
pub(super) fn open(scalar: &Scalar) -> Option<String> {
    Some(shown(&scalar.written)).filter(|_| kind(scalar) != Kind::Null && !scalar.written.is_empty())
}

/// What may be shown of a secret: the variable's name, when there is nothing else to it.
pub(super) fn secret(scalar: &Scalar) -> Option<String> {
    Some(if is_bare_reference(&scalar.written) { shown(&scalar.written) } else { "[secret]".into() })
}
