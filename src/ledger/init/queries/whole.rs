//! The five queries, each as a whole.

use super::{super::facts::Kind, Draft};
use crate::{config::ledger::Meaning, ledger::sql::Dialect};

impl Draft {
    /// Finds canaries by id and key.
    pub fn lookup(&self) -> String {
        let units = &self.units;
        let mut columns = vec![format!("{} as notification_id", self.notification_id())];
        let mut add = |value: Option<String>, name: &str| {
            columns.extend(value.map(|value| format!("{value} as {name}")))
        };
        add(units.destination.as_ref().map(|column| self.of("u", column)), "destination");
        add(units.idempotency_key.as_ref().map(|place| self.at(place)), "idempotency_key");
        add(units.route.as_ref().map(|place| self.at(place)), "route");
        add(Some(self.at(&units.accepted_at)), "accepted_at");
        add(units.not_before.as_ref().map(|place| self.at(place)), "not_before");
        add(units.status.as_ref().map(|column| self.of("u", column)), "status");
        let mut from = self.units();
        if let Some(attempts) = &self.attempts {
            add(Some(self.of("a", &attempts.key)), "attempt_id");
            add(Some(self.state(attempts).0), "attempt_status");
            add(Some(self.of("a", &attempts.at)), "attempt_at");
            add(attempts.next.as_ref().map(|column| self.of("a", column)), "next_attempt");
            add(attempts.policy.as_ref().map(|column| self.of("a", column)), "policy_version");
            let ended = self.has_ended(attempts).map_or_else(String::new, |ended| format!(" and {ended}"));
            from += &format!(
                "\n  left join {} a on {} = {}{ended}",
                self.table(&attempts.table.name),
                self.of("a", &attempts.unit),
                self.of("u", &units.key)
            );
        }
        let (id, kind) = match &units.parent {
            Some((parent, column)) => {
                let key = parent.key().unwrap_or(column);
                (self.of("p", key), key.kind)
            }
            None => (self.of("u", &units.key), units.key.kind),
        };
        let mut condition = self.ids(&id, kind);
        if let Some(place) = &units.idempotency_key {
            let key = self.at(place);
            condition += &match self.dialect {
                Dialect::Postgres => format!("\n    or {key} = any(:keys)"),
                Dialect::Mysql => format!("\n    or {key} in (:keys)"),
                Dialect::Sqlite => format!("\n    or {key} in (select value from json_each(:keys))"),
            };
        }
        format!("select {}\n  from {from}\n where {condition}\n limit :limit", columns.join(",\n       "))
    }

    /// What is pending, where something says so without reading everything.
    pub fn pending(&self) -> Option<String> {
        let units = &self.units;
        let open = match (&units.settled, &units.status) {
            (Some(column), _) if column.kind == Kind::Boolean => {
                self.is_false(&self.of("u", column), column.kind)
            }
            (Some(column), _) => format!("{} is null", self.of("u", column)),
            (None, Some(column)) => {
                let value = self.of("u", column);
                let words = self.is_any(
                    &value,
                    column.kind,
                    &[Meaning::Pending, Meaning::Retryable, Meaning::Unknown],
                );
                let null = column.is_nullable.then(|| format!("{value} is null"));
                let either: Vec<String> = null.into_iter().chain(words).collect();
                if either.is_empty() {
                    return None;
                }
                format!("({})", either.join(" or "))
            }
            (None, None) => return None,
        };
        let condition =
            [Some(open), self.not_canaries()].into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let mut columns = vec![format!("{} as accepted_at", self.at(&units.accepted_at))];
        columns.extend(units.route.as_ref().map(|place| format!("{} as route", self.at(place))));
        columns.extend(units.not_before.as_ref().map(|place| format!("{} as not_before", self.at(place))));
        let status = match (&self.attempts, &units.status) {
            (Some(attempts), _) => Some(self.newest(attempts, false)),
            (None, Some(column)) => Some(self.of("u", column)),
            (None, None) => None,
        };
        columns.extend(status.map(|status| format!("{status} as status")));
        let rows =
            format!("select {}\n  from {}\n where {condition}", columns.join(",\n       "), self.units());
        if !self.pending_counts() {
            return Some(format!("{rows}\n order by 1\n limit :limit"));
        }
        let names: Vec<&str> =
            [("route", units.route.is_some()), ("not_before", units.not_before.is_some()), ("status", true)]
                .into_iter()
                .filter_map(|(name, is_there)| is_there.then_some(name))
                .collect();
        let names = names.join(", ");
        Some(format!(
            "select {names}, min(accepted_at) as accepted_at, count(*) as n\n  from ({}) as open\n group by {names}, date_trunc('second', accepted_at)\n order by min(accepted_at)\n limit :limit",
            rows.replace('\n', "\n        ")
        ))
    }

    /// Whether [`Self::pending`] counts.
    pub fn pending_counts(&self) -> bool {
        self.dialect == Dialect::Postgres
            && matches!(self.units.accepted_at.column.kind, Kind::Instant | Kind::Naive)
    }

    /// Everybody's notifications in the order in which they were accepted.
    pub fn notifications(&self) -> String {
        let units = &self.units;
        let at = self.at(&units.accepted_at);
        let (condition, order) = self.cursor(&at, &self.of("u", &units.key));
        let mut columns = vec![format!("{} as notification_id", self.notification_id())];
        let mut add = |value: Option<String>, name: &str| {
            columns.extend(value.map(|value| format!("{value} as {name}")))
        };
        add(units.parent.as_ref().map(|_| self.of("u", &units.key)), "unit_id");
        add(units.destination.as_ref().map(|column| self.of("u", column)), "destination");
        add(units.idempotency_key.as_ref().map(|place| self.at(place)), "idempotency_key");
        add(units.route.as_ref().map(|place| self.at(place)), "route");
        add(units.canary.as_ref().map(|place| self.at(place)), "is_canary");
        add(Some(at), "accepted_at");
        add(units.not_before.as_ref().map(|place| self.at(place)), "not_before");
        add(units.status.as_ref().map(|column| self.of("u", column)), "status");
        format!(
            "select {}\n  from {}\n where {condition}\n order by {order}\n limit :limit",
            columns.join(",\n       "),
            self.units()
        )
    }

    /// Everybody's attempts, in the order in which they began, or ended.
    pub fn attempts(&self) -> Option<String> {
        let attempts = self.attempts.as_ref()?;
        let units = &self.units;
        let at = self.of("a", attempts.ended.as_ref().unwrap_or(&attempts.at));
        let (condition, order) = self.cursor(&at, &self.of("a", &attempts.key));
        let mut columns = vec![format!("{} as attempt_id", self.of("a", &attempts.key))];
        let is_joined = units.parent.is_some();
        let of = if is_joined { self.notification_id() } else { self.of("a", &attempts.unit) };
        let mut add = |value: Option<String>, name: &str| {
            columns.extend(value.map(|value| format!("{value} as {name}")))
        };
        add(Some(of), "notification_id");
        add(units.destination.as_ref().map(|column| self.of("u", column)), "destination");
        add(Some(self.state(attempts).0), "status");
        add(Some(self.of("a", &attempts.at)), "at");
        add(attempts.ended.as_ref().map(|column| self.of("a", column)), "ended_at");
        add(attempts.next.as_ref().map(|column| self.of("a", column)), "next_attempt");
        let mut from = format!("{} a", self.table(&attempts.table.name));
        if is_joined {
            from += &format!(
                "\n  join {} u on {} = {}",
                self.table(&units.table.name),
                self.of("u", &units.key),
                self.of("a", &attempts.unit)
            );
        }
        let ended = self.has_ended(attempts).map_or_else(String::new, |ended| format!(" and {ended}"));
        Some(format!(
            "select {}\n  from {from}\n where {condition}{ended}\n order by {order}\n limit :limit",
            columns.join(",\n       ")
        ))
    }

    /// The exact count of what was due in an interval.
    pub fn partition(&self) -> String {
        let units = &self.units;
        let due = self.due();
        let status = match (&self.attempts, &units.status) {
            (Some(attempts), _) => self.newest(attempts, true),
            (None, Some(column)) => self.of("u", column),
            (None, None) => "null".to_owned(),
        };
        let mut columns: Vec<String> =
            units.route.iter().map(|place| format!("{} as route", self.at(place))).collect();
        columns.push(format!("{status} as status"));
        let names = if units.route.is_some() { "route, status" } else { "status" };
        let condition = [Some(format!("{due} >= :from_ts and {due} < :until_ts")), self.not_canaries()];
        let condition = condition.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let rows =
            format!("select {}\n  from {}\n where {condition}", columns.join(",\n       "), self.units());
        format!(
            "select {names}, count(*) as n\n  from ({}) as due\n group by {names}\n limit :limit",
            rows.replace('\n', "\n        ")
        )
    }
}
