//! Which column of a service's tables is what: by names and types, each with how sure that is.

use super::{
    facts::{ColumnFact, Kind, Table},
    tables::{BY_HAND, Unrecognised, columns, is_of_notifications, pick},
    usual::*,
};

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// By a key, a reference or a name that means nothing else.
    Recognised,
    /// By a name or a type that may mean something else.
    Guess,
}

/// Something that was found, why, and how sure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// How sure it is; nothing for what is missing.
    pub sure: Option<Sure>,
    /// What, where, and why.
    pub text: String,
}

/// A column of one of the tables: `true` where it is one of the parent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The column.
    pub column: ColumnFact,
    /// Whether it is in the parent, of which the units are destinations.
    pub is_parents: bool,
}

/// How the state of an attempt is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// By a column.
    Column(ColumnFact),
    /// By which of these columns are NULL: sent, failed, and whether the address is dead.
    Nulls { sent: String, failed: Option<String>, dead: Option<ColumnFact> },
}

/// The table of what is accounted for: notifications, or their destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// The table.
    pub table: Table,
    /// Its primary key.
    pub key: ColumnFact,
    /// The notifications that the units are destinations of, and the column that refers to them.
    pub parent: Option<(Table, ColumnFact)>,
    /// The destination.
    pub destination: Option<ColumnFact>,
    /// A table of the same columns into which rows move.
    pub archive: Option<String>,
    pub idempotency_key: Option<Place>,
    pub route: Option<Place>,
    pub canary: Option<Place>,
    pub accepted_at: Place,
    pub not_before: Option<Place>,
    /// The own status.
    pub status: Option<ColumnFact>,
    /// What says that it is settled: a time that is NULL until then, or a boolean.
    pub settled: Option<ColumnFact>,
}

/// The table of attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// The table.
    pub table: Table,
    /// Its primary key.
    pub key: ColumnFact,
    /// The column that refers to the unit.
    pub unit: ColumnFact,
    /// How its state is told.
    pub state: State,
    /// When it began.
    pub at: ColumnFact,
    /// When it ended, where its row is there before.
    pub ended: Option<ColumnFact>,
    /// When the next one is planned.
    pub next: Option<ColumnFact>,
    /// The version of the policy.
    pub policy: Option<ColumnFact>,
}

/// Collects what is found.
pub struct Finder<'a> {
    /// What was found, in order.
    pub remarks: Vec<Remark>,
    tables: &'a [Table],
}

impl<'a> Finder<'a> {
    /// A finder among these tables.
    pub const fn new(tables: &'a [Table]) -> Self {
        Self { remarks: Vec::new(), tables }
    }

    /// Takes note of something.
    pub fn note(&mut self, sure: Option<Sure>, text: impl Into<String>) {
        self.remarks.push(Remark { sure, text: text.into() });
    }

    fn found(&mut self, what: &str, table: &Table, column: &ColumnFact, sure: Sure, why: &str) {
        self.note(Some(sure), format!("{what}: {}.{}, {why}", table.name, column.name));
    }

    /// A column by its name: the first names mean nothing else.
    fn named(
        &mut self,
        what: &str,
        table: &Table,
        names: &[&str],
        sure_names: usize,
        fits: impl Fn(&ColumnFact) -> bool,
    ) -> Option<ColumnFact> {
        let column = pick(table, names, fits)?.clone();
        let is_sure = names.iter().take(sure_names).any(|name| name.eq_ignore_ascii_case(&column.name));
        let sure = if is_sure { Sure::Recognised } else { Sure::Guess };
        self.found(what, table, &column, sure, "by its name");
        Some(column)
    }

    /// The same in the units, else in their parent.
    fn in_either(
        &mut self,
        what: &str,
        (table, parent): (&Table, Option<&Table>),
        (names, sure_names): (&[&str], usize),
        fits: impl Fn(&ColumnFact) -> bool,
    ) -> Option<Place> {
        if let Some(column) = self.named(what, table, names, sure_names, &fits) {
            return Some(Place { column, is_parents: false });
        }
        let column = self.named(what, parent?, names, sure_names, &fits)?;
        Some(Place { column, is_parents: true })
    }

    /// The units.
    ///
    /// # Errors
    /// When something is missing without which nothing can be read.
    pub fn units(
        &mut self,
        table: &Table,
        has_attempts: bool,
        of: Option<&Table>,
    ) -> Result<Units, Unrecognised> {
        let Some(key) = table.key().cloned() else {
            return Err(Unrecognised(format!(
                "`{}` has no primary key of one column, and only by the id that the service's API answers a notification is known: {BY_HAND}. \
                 It has: {}",
                table.name,
                columns(table)
            )));
        };
        // Without a better one, a destination is known by its row.
        let own = of.is_some().then(|| key.clone());
        let destination = pick(table, &DESTINATIONS, |column| column.kind.is_id()).cloned().or(own);
        let parent = destination.is_some().then(|| self.parent(table, of)).flatten();
        let destination = destination.filter(|_| parent.is_some());
        match (&parent, &destination) {
            (Some((of, column)), Some(destination)) => {
                let is_address = destination.name.eq_ignore_ascii_case("destination");
                let sure = if is_address { Sure::Guess } else { Sure::Recognised };
                let warning =
                    if is_address { ". If it holds addresses of people, take another column" } else { "" };
                self.note(
                    Some(sure),
                    format!(
                        "fan-out: a row of {} is one destination ({}) of a row of {} ({}){warning}",
                        table.name, destination.name, of.name, column.name
                    ),
                );
            }
            _ => {
                let (sure, why) = key_of(table);
                self.found("notification id", table, &key, sure, why);
            }
        }
        let either = (table, parent.as_ref().map(|(parent, _)| parent));
        let accepted_at = match self.in_either("accepted at", either, (&ACCEPTED, 3), |c| c.kind.is_time()) {
            Some(place) => place,
            None => {
                return Err(Unrecognised(format!(
                    "no column of `{}` looks like the time of acceptance, such as `accepted_at` or `created_at`; it has: {}. If one of them is it, \
                     {BY_HAND}",
                    table.name,
                    columns(table)
                )));
            }
        };
        let idempotency_key = self.idempotency_key(either);
        let route =
            self.in_either("route", either, (&ROUTES, 1), |c| c.kind.is_status() && c.kind != Kind::Boolean);
        let canary = self.in_either("canary mark", either, (&CANARIES, 2), |c| {
            matches!(c.kind, Kind::Boolean | Kind::Integer(_))
        });
        if canary.is_none() {
            let text = "canary mark: no column marks canaries. The follower knows them by their ids and keys, and `partition` and `pending` \
                        count them among the customers: leave them out there, by their route or account";
            self.note(None, text);
        }
        let not_before =
            self.in_either("not before", either, (&NOT_BEFORE, 5), |c| c.kind.is_time() && c.is_nullable);
        let status = pick(table, &STATUSES, |column| column.kind.is_status()).cloned();
        match (&status, has_attempts) {
            (Some(column), true) => self.note(
                Some(Sure::Guess),
                format!("{}.{} is left out: the attempts say more, and sooner. Where it knows better, name it as `status`", table.name, column.name),
            ),
            (Some(column), false) => self.found("status", table, column, Sure::Recognised, "by its name: there are no attempts beside it"),
            (None, true) => {}
            (None, false) => {
                return Err(Unrecognised(format!(
                    "nothing says where a notification of `{}` stands: it has no column such as `status`, and no table of attempts was found. Name \
                     that by --attempts; or if one of its columns says it, {BY_HAND}. It has: {}",
                    table.name,
                    columns(table)
                )));
            }
        }
        let settled = self.named("settled", table, &SETTLED, 3, |c| c.kind == Kind::Boolean || c.is_nullable);
        if let Some(column) = pick(table, &DELETED, |_| true) {
            let text = format!(
                "{}.{} marks deleted rows, and is left out: what is deleted counts as it stood. See `fan_out` in the guide for the other way",
                table.name, column.name
            );
            self.note(Some(Sure::Guess), text);
        }
        let archive = self.archive(table);
        let status = status.filter(|_| !has_attempts);
        Ok(Units {
            table: table.clone(),
            key,
            parent,
            destination,
            archive,
            idempotency_key,
            route,
            canary,
            accepted_at,
            not_before,
            status,
            settled,
        })
    }

    /// The notifications that this table has the destinations of.
    fn parent(&self, table: &Table, of: Option<&Table>) -> Option<(Table, ColumnFact)> {
        let refers = |other: &Table| Some((other.clone(), table.refers_to(other)?.0.clone()));
        match of {
            Some(of) => refers(of),
            None => self
                .tables
                .iter()
                .filter(|other| other.name != table.name && is_of_notifications(other))
                .find_map(refers),
        }
    }

    fn idempotency_key(&mut self, either: (&Table, Option<&Table>)) -> Option<Place> {
        let is_text = |column: &ColumnFact| matches!(column.kind, Kind::Text | Kind::Loose);
        if let Some(place) = self.in_either("idempotency key", either, (&KEYS, 5), is_text) {
            return Some(place);
        }
        let (table, parent) = (either.1.unwrap_or(either.0), either.1.is_some());
        let is_personal = |name: &str| PERSONAL.iter().any(|word| name.to_lowercase().contains(word));
        let mut unique = table.columns.iter().filter(|column| {
            let is_key = table.is_unique(&column.name) && table.key() != Some(*column);
            is_key && is_text(column) && !is_personal(&column.name)
        });
        let column = unique.next().cloned()?;
        self.found(
            "idempotency key",
            table,
            &column,
            Sure::Guess,
            "a unique text. If it is none, leave it and `:keys` out",
        );
        Some(Place { column, is_parents: parent })
    }

    /// A table of the same columns whose name says that rows move there.
    fn archive(&mut self, table: &Table) -> Option<String> {
        let names = ["archive", "archived", "history", "old"];
        let is_it = |other: &&Table| {
            let rest = other.name.strip_prefix(&table.name).or_else(|| other.name.strip_suffix(&table.name));
            let is_named = rest.is_some_and(|rest| names.contains(&rest.trim_matches('_')));
            is_named && table.columns.iter().all(|column| other.column(&column.name).is_some())
        };
        let found = self.tables.iter().find(is_it)?.name.clone();
        let text =
            format!("archive: {found} has the same columns, and is read as well: rows seem to move there");
        self.note(Some(Sure::Guess), text);
        Some(found)
    }

    /// The attempts of these units.
    ///
    /// # Errors
    /// When something is missing without which nothing can be read.
    pub fn attempts(&mut self, table: &Table, units: &Table) -> Result<Attempts, Unrecognised> {
        let missing = |what: &str| {
            Err(Unrecognised(format!(
                "`{}` has no {what}: is it the table of the attempts? Another is named by --attempts; if it is, {BY_HAND}. It has: {}",
                table.name,
                columns(table)
            )))
        };
        let Some(key) = table.key().cloned() else { return missing("primary key of one column") };
        let (sure, why) = key_of(table);
        self.found("attempt id", table, &key, sure, why);
        let Some((unit, is_declared)) =
            table.refers_to(units).map(|(column, declared)| (column.clone(), declared))
        else {
            return missing(&format!("column that refers to `{}`", units.name));
        };
        let (sure, why) =
            if is_declared { (Sure::Recognised, "a foreign key") } else { (Sure::Guess, "by its name") };
        self.found("attempt of", table, &unit, sure, why);
        let next = self.named("next attempt", table, &NEXT, 3, |c| c.is_nullable && c.kind.is_time());
        let ended = pick(table, &ENDED, |c| c.is_nullable && c.kind.is_time()).cloned();
        let state = match self.named("attempt status", table, &STATUSES, 2, |c| c.kind.is_status()) {
            Some(column) => State::Column(column),
            None => {
                let Some(sent) = pick(table, &SENT, |c| c.is_nullable) else {
                    return missing(
                        "column such as `status` or `outcome`, nor one such as `sent_at` that is NULL before",
                    );
                };
                let failed = pick(table, &FAILED, |c| c.is_nullable).map(|column| column.name.clone());
                let dead =
                    pick(table, &DEAD, |c| matches!(c.kind, Kind::Boolean | Kind::Integer(_))).cloned();
                let text = format!(
                    "attempt status: told by what is NULL in {}: sent by {}, failed by {}, a dead address by {}",
                    table.name,
                    sent.name,
                    failed.as_deref().unwrap_or("nothing"),
                    dead.as_ref().map_or("nothing", |column| &column.name)
                );
                self.note(Some(Sure::Guess), text);
                State::Nulls { sent: sent.name.clone(), failed, dead }
            }
        };
        // A row that is there while its attempt is under way is read when it has ended.
        let is_early = matches!(&state, State::Nulls { .. })
            || matches!(&state, State::Column(column) if column.is_nullable);
        let ended = ended.filter(|_| is_early);
        if let Some(column) = &ended {
            let text = format!(
                "attempts are read in the order in which they end, by {}.{}: rows seem to be there before. It has to be set once, and never changed",
                table.name, column.name
            );
            self.note(Some(Sure::Guess), text);
        } else if is_early {
            let text = format!(
                "rows of {} seem to be there while the attempt is under way, and no column says when it ended: a change later than `overlap` \
                 after its start is seen only when the notification is asked for again",
                table.name
            );
            self.note(Some(Sure::Guess), text);
        }
        let Some(at) = self.named("attempt time", table, &STARTED, 3, |c| c.kind.is_time()) else {
            return missing("column such as `started_at` or `created_at`");
        };
        let policy = self.named("policy version", table, &POLICIES, 1, |c| c.kind.is_id());
        Ok(Attempts { table: table.clone(), key, unit, state, at, ended, next, policy })
    }
}

/// How surely the key of a table is one, and why.
fn key_of(table: &Table) -> (Sure, &'static str) {
    if table.is_key_shared() {
        (Sure::Guess, "in its primary key, beside what tells the partition: is it alone in all of them?")
    } else {
        (Sure::Recognised, "its primary key")
    }
}
