//! A configuration decoded piece by piece, so that one bad piece does not hide what is wrong with the others.

use super::{
    acceptance::Acceptance,
    alerts::Alerts,
    ledger::Ledger,
    model::{Listeners, MaintenanceWindow, Retention, Route, StoreConfig},
    receipt::Receiver,
    report::{At, Report},
    scalar::Span,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// All pieces. A piece that could not be decoded is `None`, but its name is known.
pub struct Draft {
    /// The location, where it is sound.
    pub location: Option<String>,
    /// The locations.
    pub locations: Vec<String>,
    /// The listeners.
    pub listeners: Option<Listeners>,
    /// The store.
    pub store: Option<StoreConfig>,
    /// The retention.
    pub retention: Option<Retention>,
    /// The grace time.
    pub grace: Option<Span>,
    /// The acceptances, by name.
    pub acceptances: BTreeMap<String, Option<Acceptance>>,
    /// The receivers, by name.
    pub receivers: BTreeMap<String, Option<Receiver>>,
    /// The ledgers, by name.
    pub ledgers: BTreeMap<String, Option<Ledger>>,
    /// The routes, in the file's order.
    pub routes: Vec<Option<Route>>,
    /// The maintenance windows, in the file's order.
    pub maintenance: Vec<Option<MaintenanceWindow>>,
    /// What alert rules are made from.
    pub alerts: Option<Alerts>,
    /// The full names of all routes whose name can be read; `None` when some route's can't.
    pub route_names: Option<BTreeSet<String>>,
}

/// Decodes all pieces of a walked tree. `unsound` are the addresses where the walker found faults.
pub(super) fn decode(mut root: Value, unsound: &BTreeSet<At>, report: &mut Report) -> Draft {
    let route_names = route_names(&root["routes"]);
    let mut pieces = Pieces { unsound, report };
    let top = At::root();
    Draft {
        location: pieces.one(root["location"].take(), &top.key("location")),
        locations: pieces.one(root["locations"].take(), &top.key("locations")).unwrap_or_default(),
        listeners: pieces.defaulted(root["listeners"].take(), &top.key("listeners")),
        store: pieces.one(root["store"].take(), &top.key("store")),
        retention: pieces.defaulted(root["retention"].take(), &top.key("retention")),
        grace: pieces.one(root["grace"].take(), &top.key("grace")),
        acceptances: pieces.table(root["acceptances"].take(), &top.key("acceptances")),
        receivers: pieces.table(root["receivers"].take(), &top.key("receivers")),
        ledgers: pieces.table(root["ledgers"].take(), &top.key("ledgers")),
        routes: pieces.list(root["routes"].take(), &top.key("routes")),
        maintenance: pieces.list(root["maintenance"].take(), &top.key("maintenance")),
        alerts: pieces.one(root["alerts"].take(), &top.key("alerts")),
        route_names,
    }
}

struct Pieces<'a> {
    unsound: &'a BTreeSet<At>,
    report: &'a mut Report,
}

impl Pieces<'_> {
    fn one<T: DeserializeOwned>(&mut self, value: Value, at: &At) -> Option<T> {
        if value.is_null() || self.unsound.contains(at) {
            return None;
        }
        match serde_path_to_error::deserialize(value) {
            Ok(piece) => Some(piece),
            Err(error) => {
                let mut inner = at.clone();
                for segment in error.path() {
                    match segment {
                        serde_path_to_error::Segment::Seq { index } => inner = inner.key(index),
                        serde_path_to_error::Segment::Map { key } => inner = inner.key(key),
                        serde_path_to_error::Segment::Enum { variant } => inner = inner.key(variant),
                        serde_path_to_error::Segment::Unknown => {}
                    }
                }
                // The decoder's own text may quote the value, which may be a secret's neighbour: only its place is used.
                self.report.fault(&inner, "this value can't be used here", "see docs/configuration.md");
                None
            }
        }
    }

    fn defaulted<T: DeserializeOwned + Default>(&mut self, value: Value, at: &At) -> Option<T> {
        if value.is_null() && !self.unsound.contains(at) { Some(T::default()) } else { self.one(value, at) }
    }

    fn table<T: DeserializeOwned>(&mut self, value: Value, at: &At) -> BTreeMap<String, Option<T>> {
        let Value::Object(entries) = value else { return BTreeMap::new() };
        entries
            .into_iter()
            .map(|(name, value)| {
                let piece = self.one(value, &at.key(&name));
                (name, piece)
            })
            .collect()
    }

    fn list<T: DeserializeOwned>(&mut self, value: Value, at: &At) -> Vec<Option<T>> {
        let Value::Array(items) = value else { return Vec::new() };
        items.into_iter().enumerate().map(|(n, value)| self.one(value, &at.key(n))).collect()
    }
}

fn route_names(routes: &Value) -> Option<BTreeSet<String>> {
    let Value::Array(routes) = routes else { return None };
    routes
        .iter()
        .map(|route| Some(format!("{}/{}", route["channel"].as_str()?, route["name"].as_str()?)))
        .collect()
}
