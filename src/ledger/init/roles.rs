//! Which column of a service's tables is what: by hand, else by names and types, each with how sure that is.

mod attempts;
mod units;

use super::{
    facts::{ColumnFact, Table},
    named::{Columns, GaveUp, Role, Unplaced, find},
    tables::{columns, pick},
};
use std::collections::BTreeSet;

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
    by_hand: &'a Columns,
    /// The columns that have a role already, each with its table.
    placed: BTreeSet<(String, String)>,
    gave_up: GaveUp,
}

impl<'a> Finder<'a> {
    /// A finder among these tables, with the columns that were named by hand.
    pub fn new(tables: &'a [Table], by_hand: &'a Columns) -> Self {
        let (remarks, placed) = (Vec::new(), BTreeSet::new());
        Self { remarks, tables, by_hand, placed, gave_up: GaveUp::default() }
    }

    /// Takes note of something.
    pub fn note(&mut self, sure: Option<Sure>, text: impl Into<String>) {
        self.remarks.push(Remark { sure, text: text.into() });
    }

    fn found(&mut self, what: &str, table: &Table, column: &ColumnFact, sure: Sure, why: &str) {
        self.placed.insert((table.name.clone(), column.name.clone()));
        self.note(Some(sure), format!("{what}: {}.{}, {why}", table.name, column.name));
    }

    /// The column that was named for this role, with the place of its table among these. What was named wrong is remembered.
    fn chosen(&mut self, role: Role, tables: &[&Table]) -> Option<(usize, ColumnFact)> {
        let name = self.by_hand.get(&role)?;
        let named = format!("--column {}={name}", role.word());
        let at =
            tables.iter().enumerate().find_map(|(place, table)| Some((place, *table, find(table, name)?)));
        match at {
            Some((place, table, column)) if role.fits(column) => {
                self.found(role.word(), table, column, Sure::Recognised, "as was said by --column");
                return Some((place, column.clone()));
            }
            Some((_, table, column)) => {
                let why = if column.is_nullable { "" } else { ", or by being never NULL" };
                let fault =
                    format!("{named}: `{}.{}` can't be that by its type{why}", table.name, column.name);
                self.gave_up.faults.push(fault);
            }
            None => {
                let have: Vec<String> =
                    tables.iter().map(|table| format!("`{}` has: {}", table.name, columns(table))).collect();
                self.gave_up.faults.push(format!("{named}: there is no such column; {}", have.join("; ")));
            }
        }
        None
    }

    /// Takes note that nothing has this role, without which nothing can be read.
    fn needs(&mut self, role: Role, table: &Table) -> Option<ColumnFact> {
        // Named wrong is no less than not named, and told already.
        if !self.by_hand.contains_key(&role) {
            self.gave_up.needed.push(Unplaced {
                role,
                table: table.name.clone(),
                candidates: Vec::new(),
                columns: columns(table),
            });
        }
        None
    }

    /// A column by hand, else by its name: the first names mean nothing else.
    fn named(
        &mut self,
        role: Role,
        what: &str,
        table: &Table,
        names: (&[&str], usize),
        fits: impl Fn(&ColumnFact) -> bool,
    ) -> Option<ColumnFact> {
        self.in_either(role, what, (table, None), names, fits).map(|place| place.column)
    }

    /// The same in the units, else in their parent.
    fn in_either(
        &mut self,
        role: Role,
        what: &str,
        (table, parent): (&Table, Option<&Table>),
        (names, sure_names): (&[&str], usize),
        fits: impl Fn(&ColumnFact) -> bool,
    ) -> Option<Place> {
        let tables: Vec<&Table> = [Some(table), parent].into_iter().flatten().collect();
        if self.by_hand.contains_key(&role) {
            let (place, column) = self.chosen(role, &tables)?;
            return Some(Place { column, is_parents: place > 0 });
        }
        for (place, table) in tables.iter().enumerate() {
            let Some(column) = pick(table, names, &fits).cloned() else { continue };
            let is_sure = names.iter().take(sure_names).any(|name| name.eq_ignore_ascii_case(&column.name));
            let sure = if is_sure { Sure::Recognised } else { Sure::Guess };
            self.found(what, table, &column, sure, "by its name");
            return Some(Place { column, is_parents: place > 0 });
        }
        if !self.gave_up.optional.contains(&role) {
            self.gave_up.optional.push(role);
        }
        None
    }

    /// What to name where something is missing without which nothing can be read, or was named wrong; nothing where all is well.
    pub fn gives_up(&self, notifications: &Table, attempts: Option<&Table>) -> Option<GaveUp> {
        let mut gave_up = self.gave_up.clone();
        if gave_up.needed.is_empty() && gave_up.faults.is_empty() {
            return None;
        }
        gave_up.notifications.clone_from(&notifications.name);
        gave_up.attempts = attempts.map(|table| table.name.clone());
        gave_up.optional.retain(|role| gave_up.needed.iter().all(|needed| needed.role != *role));
        for needed in &mut gave_up.needed {
            let table = self.tables.iter().find(|table| table.name == needed.table);
            let is_free =
                |column: &&ColumnFact| !self.placed.contains(&(needed.table.clone(), column.name.clone()));
            let free = table.into_iter().flat_map(|table| &table.columns).filter(is_free);
            needed.candidates = needed.role.candidates(free, notifications.key().map(|key| key.kind));
        }
        Some(gave_up)
    }

    /// Takes note of what was not placed, and can be.
    pub fn note_optional(&mut self) {
        let words: Vec<&str> = self.gave_up.optional.iter().map(|role| role.word()).collect();
        if !words.is_empty() {
            let text = format!(
                "columns for {}: where there are such, name them by --column, as in --column {}=COLUMN, and run this again",
                words.join(", "),
                words[0]
            );
            self.note(None, text);
        }
    }

    /// Takes note of a column that was named for a table that there isn't.
    pub fn has_no_attempts(&mut self) {
        for (role, name) in self.by_hand.iter().filter(|(role, _)| role.is_of_attempts()) {
            self.gave_up.faults.push(format!(
                "--column {}={name}: no table of attempts was found; name it by --attempts",
                role.word()
            ));
        }
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
