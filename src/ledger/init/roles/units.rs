//! Which column of the table of what is accounted for is what: of notifications, or their destinations.

use super::{
    super::{
        facts::{ColumnFact, Kind, Table},
        named::Role,
        tables::{is_of_notifications, pick},
        usual::*,
    },
    Finder, Place, Sure, Units, key_of,
};

impl Finder<'_> {
    /// The units; nothing where something is missing without which they can't be read.
    pub fn units(&mut self, table: &Table, has_attempts: bool, of: Option<&Table>) -> Option<Units> {
        let by_hand = self.chosen(Role::NotificationId, &[table]).map(|(_, column)| column);
        let is_by_hand = by_hand.is_some();
        let key =
            by_hand.or_else(|| table.key().cloned()).or_else(|| self.needs(Role::NotificationId, table));
        // Without a better one, a destination is known by its row.
        let own = if of.is_some() { key.clone() } else { None };
        let destination = match self.chosen(Role::Destination, &[table]) {
            Some((_, column)) => Some(column),
            None => pick(table, &DESTINATIONS, |column| column.kind.is_id()).cloned().or(own),
        };
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
            _ if is_by_hand => {
                if has_attempts && key.as_ref() != table.key() {
                    let text = "the notification id is not the primary key: attempts have to refer to it, and not to that";
                    self.note(Some(Sure::Guess), text);
                }
            }
            _ => {
                let (sure, why) = key_of(table);
                if let Some(key) = &key {
                    self.found("notification id", table, key, sure, why);
                }
            }
        }
        let either = (table, parent.as_ref().map(|(parent, _)| parent));
        let accepted_at =
            self.in_either(Role::AcceptedAt, "accepted at", either, (&ACCEPTED, 3), |c| c.kind.is_time());
        if accepted_at.is_none() {
            self.needs(Role::AcceptedAt, table);
        }
        let idempotency_key = self.idempotency_key(either);
        let route = self.in_either(Role::Route, "route", either, (&ROUTES, 1), |c| Role::Route.fits(c));
        let canary =
            self.in_either(Role::Canary, "canary mark", either, (&CANARIES, 2), |c| Role::Canary.fits(c));
        if canary.is_none() {
            let text = "canary mark: no column marks canaries. The follower knows them by their ids and keys, and `partition` and `pending` \
                        count them among the customers: leave them out there, by their route or account";
            self.note(None, text);
        }
        let not_before = self.in_either(Role::NotBefore, "not before", either, (&NOT_BEFORE, 5), |c| {
            c.kind.is_time() && c.is_nullable
        });
        let said = self.chosen(Role::Status, &[table]).map(|(_, column)| column);
        if said.is_some() && has_attempts {
            self.gave_up.faults.push(
                "--column status=…: there are attempts, which say more, and sooner; what came of them is named as attempt_status".to_owned(),
            );
        }
        let is_said = said.is_some();
        let status = said.or_else(|| pick(table, &STATUSES, |column| column.kind.is_status()).cloned());
        match (&status, has_attempts) {
            (Some(_), _) if is_said => {}
            (Some(column), true) => self.note(
                Some(Sure::Guess),
                format!("{}.{} is left out: the attempts say more, and sooner. Where it knows better, name it as `status`", table.name, column.name),
            ),
            (Some(column), false) => self.found("status", table, column, Sure::Recognised, "by its name: there are no attempts beside it"),
            (None, true) => {}
            (None, false) => {
                self.needs(Role::Status, table);
            }
        }
        let settled = self.named(Role::Settled, "settled", table, (&SETTLED, 3), |c| Role::Settled.fits(c));
        if let Some(column) = pick(table, &DELETED, |_| true) {
            let text = format!(
                "{}.{} marks deleted rows, and is left out: what is deleted counts as it stood. See `fan_out` in the guide for the other way",
                table.name, column.name
            );
            self.note(Some(Sure::Guess), text);
        }
        let archive = self.archive(table);
        let status = status.filter(|_| !has_attempts);
        Some(Units {
            table: table.clone(),
            key: key?,
            parent,
            destination,
            archive,
            idempotency_key,
            route,
            canary,
            accepted_at: accepted_at?,
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
        if let Some(place) =
            self.in_either(Role::IdempotencyKey, "idempotency key", either, (&KEYS, 5), is_text)
        {
            return Some(place);
        }
        let (table, parent) = (either.1.unwrap_or(either.0), either.1.is_some());
        let is_personal = |name: &str| PERSONAL.iter().any(|word| name.to_lowercase().contains(word));
        let mut unique = table.columns.iter().filter(|column| {
            let is_placed = self.placed.contains(&(table.name.clone(), column.name.clone()));
            let is_key = table.is_unique(&column.name) && table.key() != Some(*column) && !is_placed;
            is_key && is_text(column) && !is_personal(&column.name)
        });
        let column = unique.next().filter(|_| !self.by_hand.contains_key(&Role::IdempotencyKey)).cloned()?;
        self.gave_up.optional.retain(|role| *role != Role::IdempotencyKey);
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
}
