//! The queries for a service's tables, as SQL of its database.

mod whole;

use super::{
    facts::{ColumnFact, Kind},
    roles::{Attempts, Place, State, Units},
    sample::table_name,
    source::quoted,
};
use crate::{config::ledger::Meaning, ledger::sql::Dialect};

/// A word of the service's with what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWord {
    /// The word; nothing for NULL.
    pub word: Option<String>,
    /// What it means.
    pub meaning: Meaning,
    /// Why; nothing where it says nothing to us.
    pub why: Option<String>,
}

/// All that the queries are made of.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Whose SQL it is.
    pub dialect: Dialect,
    /// The schema, where it has to be written.
    pub schema: Option<String>,
    /// The units.
    pub units: Units,
    /// The attempts.
    pub attempts: Option<Attempts>,
    /// The statuses.
    pub statuses: Vec<StatusWord>,
}

/// The word that says that a failure will be tried again, made by the query.
pub const AGAIN: &str = "again";

impl Draft {
    fn q(&self, name: &str) -> String {
        quoted(name, self.dialect)
    }

    fn of(&self, alias: &str, column: &ColumnFact) -> String {
        format!("{alias}.{}", self.q(&column.name))
    }

    fn at(&self, place: &Place) -> String {
        self.of(if place.is_parents { "p" } else { "u" }, &place.column)
    }

    fn table(&self, name: &str) -> String {
        table_name(self.schema.as_deref(), name, self.dialect)
    }

    /// The notification's id: that of the parent, where the units are destinations.
    fn notification_id(&self) -> String {
        let units = &self.units;
        self.of("u", units.parent.as_ref().map_or(&units.key, |(_, column)| column))
    }

    /// What the units are read from, with what is asked of them.
    fn units(&self) -> String {
        let units = &self.units;
        let mut text = match &units.archive {
            None => format!("{} u", self.table(&units.table.name)),
            Some(archive) => {
                let columns = self.unit_columns();
                format!(
                    "(select {columns} from {}\n        union all\n        select {columns} from {}) u",
                    self.table(&units.table.name),
                    self.table(archive)
                )
            }
        };
        if let Some((parent, column)) = &units.parent {
            let key = parent.key().map_or("id", |key| key.name.as_str());
            text += &format!(
                "\n  join {} p on p.{} = {}",
                self.table(&parent.name),
                self.q(key),
                self.of("u", column)
            );
        }
        text
    }

    /// The columns of the units that any query names.
    fn unit_columns(&self) -> String {
        let units = &self.units;
        let places = [&units.idempotency_key, &units.route, &units.canary, &units.not_before];
        let places =
            places.into_iter().flatten().chain([&units.accepted_at]).filter(|place| !place.is_parents);
        let own = [&units.destination, &units.status, &units.settled];
        let mut names: Vec<String> = vec![self.q(&units.key.name)];
        let parent = units.parent.iter().map(|(_, column)| column);
        for column in parent.chain(own.into_iter().flatten()).chain(places.map(|place| &place.column)) {
            let name = self.q(&column.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }

    fn not_canaries(&self) -> Option<String> {
        self.units.canary.as_ref().map(|place| self.is_false(&self.at(place), place.column.kind))
    }

    fn is_false(&self, value: &str, kind: Kind) -> String {
        if kind == Kind::Boolean && self.dialect == Dialect::Postgres {
            format!("not {value}")
        } else {
            format!("{value} = 0")
        }
    }

    /// A word as it stands in SQL, for a column of this kind.
    fn literal(&self, word: &str, kind: Kind) -> String {
        match kind {
            Kind::Boolean if self.dialect == Dialect::Postgres => word.to_owned(),
            Kind::Boolean | Kind::Integer(_) if word.parse::<i64>().is_ok() => word.to_owned(),
            _ if self.dialect == Dialect::Mysql => {
                format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
            }
            _ => format!("'{}'", word.replace('\'', "''")),
        }
    }

    /// Whether a value is one of the words with these meanings.
    fn is_any(&self, value: &str, kind: Kind, meanings: &[Meaning]) -> Option<String> {
        let with = self.statuses.iter().filter(|status| meanings.contains(&status.meaning));
        let words: Vec<String> = with
            .filter_map(|status| status.word.as_deref())
            .filter(|word| *word != AGAIN)
            .map(|word| self.literal(word, kind))
            .collect();
        (!words.is_empty()).then(|| format!("{value} in ({})", words.join(", ")))
    }

    /// An attempt's status as a value, and its kind.
    fn state(&self, attempts: &Attempts) -> (String, Kind) {
        match &attempts.state {
            State::Column(column) => (self.of("a", column), column.kind),
            State::Nulls { sent, failed, dead } => {
                let mut text = format!("case when a.{} is not null then 'sent'", self.q(sent));
                if let Some(dead) = dead.as_ref().filter(|_| failed.is_some()) {
                    let value = self.of("a", dead);
                    let is_boolean = dead.kind == Kind::Boolean && self.dialect == Dialect::Postgres;
                    let is_dead = if is_boolean { value } else { format!("{value} <> 0") };
                    text += &format!(" when {is_dead} then 'dead_address'");
                }
                if let Some(failed) = failed {
                    text += &format!(" when a.{} is not null then 'failed'", self.q(failed));
                }
                (text + " end", Kind::Text)
            }
        }
    }

    /// The condition of attempts that have ended.
    fn has_ended(&self, attempts: &Attempts) -> Option<String> {
        if let Some(ended) = &attempts.ended {
            return Some(format!("{} is not null", self.of("a", ended)));
        }
        match &attempts.state {
            State::Column(column) if column.is_nullable => {
                Some(format!("{} is not null", self.of("a", column)))
            }
            State::Column(_) => None,
            State::Nulls { sent, failed, .. } => Some(match failed {
                Some(failed) => {
                    format!("(a.{} is not null or a.{} is not null)", self.q(sent), self.q(failed))
                }
                None => format!("a.{} is not null", self.q(sent)),
            }),
        }
    }

    /// The status of the newest attempt of a unit, or of the one that decides: the newest terminal one before all others.
    fn newest(&self, attempts: &Attempts, decides: bool) -> String {
        let (state, kind) = self.state(attempts);
        let good = self.is_any(&state, kind, &[Meaning::Delivered, Meaning::Suppressed]);
        let bad = self.is_any(&state, kind, &[Meaning::RejectedRecipient, Meaning::RejectedService]);
        let text = match (kind, self.dialect) {
            (Kind::Text | Kind::Loose, _) => state.clone(),
            (_, Dialect::Postgres | Dialect::Sqlite) => format!("cast({state} as text)"),
            (_, Dialect::Mysql) => format!("cast({state} as char)"),
        };
        let (shown, bad) = match &attempts.next {
            None => (text, bad),
            Some(next) => {
                let next = self.of("a", next);
                let unless_good = good.as_ref().map_or_else(String::new, |good| format!(" and not {good}"));
                let shown =
                    format!("case when {next} is not null{unless_good} then '{AGAIN}' else {text} end");
                (shown, bad.map(|bad| format!("({bad} and {next} is null)")))
            }
        };
        let terminal: Vec<String> = good.into_iter().chain(bad).collect();
        let terminal = if decides && !terminal.is_empty() {
            // A boolean is no number in all of them, and NULL is not before or behind the others in all of them.
            format!("case when {} then 1 else 0 end desc, ", terminal.join(" or "))
        } else {
            String::new()
        };
        let ended = self.has_ended(attempts).map_or_else(String::new, |ended| format!(" and {ended}"));
        format!(
            "(select {shown}\n                  from {} a\n                 where {} = {}{ended}\n                 order by {terminal}{} desc, {} desc limit 1)",
            self.table(&attempts.table.name),
            self.of("a", &attempts.unit),
            self.of("u", &self.units.key),
            self.of("a", &attempts.at),
            self.of("a", &attempts.key)
        )
    }

    /// The later of acceptance and `not_before`.
    fn due(&self) -> String {
        let accepted = self.at(&self.units.accepted_at);
        match (&self.units.not_before, self.dialect) {
            (None, _) => accepted,
            (Some(place), Dialect::Postgres) => format!("greatest({accepted}, {})", self.at(place)),
            (Some(place), Dialect::Mysql) => {
                format!("greatest({accepted}, coalesce({}, {accepted}))", self.at(place))
            }
            (Some(place), Dialect::Sqlite) => {
                format!("max({accepted}, coalesce({}, {accepted}))", self.at(place))
            }
        }
    }

    /// The place in a stream, as a condition and an order.
    fn cursor(&self, at: &str, id: &str) -> (String, String) {
        let condition = match self.dialect {
            Dialect::Mysql => format!("{at} >= :after_ts and ({at} > :after_ts or {id} > :after_id)"),
            Dialect::Postgres | Dialect::Sqlite => format!("({at}, {id}) > (:after_ts, :after_id)"),
        };
        (condition, format!("{at}, {id}"))
    }

    fn ids(&self, value: &str, kind: Kind) -> String {
        let list = |cast: &str| format!("{value} = any(:ids{cast})");
        match (self.dialect, kind) {
            (Dialect::Sqlite, _) => format!("{value} in (select value from json_each(:ids))"),
            (Dialect::Mysql, Kind::UuidBytes) => format!("{value} in (:ids_as_bytes)"),
            (Dialect::Mysql, _) => format!("{value} in (:ids)"),
            (Dialect::Postgres, Kind::Uuid) => list("::uuid[]"),
            (Dialect::Postgres, Kind::Integer(8)) => list("::bigint[]"),
            (Dialect::Postgres, Kind::Integer(4)) => list("::int[]"),
            (Dialect::Postgres, Kind::Integer(_)) => list("::smallint[]"),
            (Dialect::Postgres, _) => list(""),
        }
    }
}
