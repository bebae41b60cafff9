//! Which column of the table of attempts is what.

use super::{
    super::{
        facts::{Kind, Table},
        named::Role,
        tables::pick,
        usual::*,
    },
    Attempts, Finder, State, Sure, key_of,
};

impl Finder<'_> {
    /// The attempts of these units; nothing where something is missing without which they can't be read.
    pub fn attempts(&mut self, table: &Table, units: &Table) -> Option<Attempts> {
        let key = match self.chosen(Role::AttemptId, &[table]) {
            Some((_, key)) => Some(key),
            None => table.key().cloned().inspect(|key| {
                let (sure, why) = key_of(table);
                self.found("attempt id", table, key, sure, why);
            }),
        };
        let key = key.or_else(|| self.needs(Role::AttemptId, table));
        let unit = match self.chosen(Role::AttemptOf, &[table]) {
            Some((_, column)) => Some(column),
            None => table.refers_to(units).map(|(column, is_declared)| {
                let (sure, why) = if is_declared {
                    (Sure::Recognised, "a foreign key")
                } else {
                    (Sure::Guess, "by its name")
                };
                self.found("attempt of", table, column, sure, why);
                column.clone()
            }),
        };
        let unit = unit.or_else(|| self.needs(Role::AttemptOf, table));
        let next = self.named(Role::NextAttempt, "next attempt", table, (&NEXT, 3), |c| {
            c.is_nullable && c.kind.is_time()
        });
        let ended = match self.chosen(Role::EndedAt, &[table]) {
            Some((_, ended)) => Some(ended),
            None => pick(table, &ENDED, |c| c.is_nullable && c.kind.is_time()).cloned(),
        };
        let state = self.state(table);
        // A row that is there while its attempt is under way is read when it has ended.
        let is_early = match &state {
            Some(State::Nulls { .. }) => true,
            Some(State::Column(column)) => column.is_nullable,
            None => false,
        };
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
        let at = self.named(Role::AttemptAt, "attempt time", table, (&STARTED, 3), |c| c.kind.is_time());
        let at = at.or_else(|| self.needs(Role::AttemptAt, table));
        let policy =
            self.named(Role::PolicyVersion, "policy version", table, (&POLICIES, 1), |c| c.kind.is_id());
        Some(Attempts {
            table: table.clone(),
            key: key?,
            unit: unit?,
            state: state?,
            at: at?,
            ended,
            next,
            policy,
        })
    }

    /// How the state of an attempt is told: by a column, else by what is NULL.
    fn state(&mut self, table: &Table) -> Option<State> {
        let by_column =
            self.named(Role::AttemptStatus, "attempt status", table, (&STATUSES, 2), |c| c.kind.is_status());
        if let Some(column) = by_column {
            return Some(State::Column(column));
        }
        let Some(sent) = pick(table, &SENT, |c| c.is_nullable) else {
            self.needs(Role::AttemptStatus, table);
            return None;
        };
        let failed = pick(table, &FAILED, |c| c.is_nullable).map(|column| column.name.clone());
        let dead = pick(table, &DEAD, |c| matches!(c.kind, Kind::Boolean | Kind::Integer(_))).cloned();
        let text = format!(
            "attempt status: told by what is NULL in {}: sent by {}, failed by {}, a dead address by {}",
            table.name,
            sent.name,
            failed.as_deref().unwrap_or("nothing"),
            dead.as_ref().map_or("nothing", |column| &column.name)
        );
        self.note(Some(Sure::Guess), text);
        Some(State::Nulls { sent: sent.name.clone(), failed, dead })
    }
}
