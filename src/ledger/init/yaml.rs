//! What is proposed, as YAML for `ledgers:` with what is to be known of it in front.

use super::{
    meaning,
    queries::{Draft, StatusWord},
    roles::{Remark, Sure},
    sample::Written,
};
use crate::ledger::sql::Dialect;
use std::fmt::Write as _;

/// A word of the service's for a route, and the configured route that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteWord {
    /// The word; `*` takes all the rest.
    pub word: String,
    /// The route; nothing where none is known that it could be.
    pub route: Option<String>,
    /// Why.
    pub why: String,
}

/// How the times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Of acceptance.
    pub accepted_at: Written,
    /// Before which nothing goes out.
    pub not_before: Written,
    /// Of an attempt.
    pub at: Written,
    /// Of an attempt's end.
    pub ended: Written,
}

/// All that is proposed.
pub struct Proposal {
    /// The ledger's name in the configuration.
    pub name: String,
    /// The name of the variable for the address.
    pub variable: String,
    /// The queries.
    pub draft: Draft,
    /// The times.
    pub times: Times,
    /// The routes.
    pub routes: Vec<RouteWord>,
    /// What was recognised, guessed and not found.
    pub remarks: Vec<Remark>,
    /// Indexes that are missing: the statements that would make each, and what for.
    pub missing: Vec<(Vec<String>, String)>,
}

impl Proposal {
    /// The YAML.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        self.remarks(&mut out);
        // Writing to a String can't fail.
        let _ = writeln!(out, "ledgers:\n  {}:\n    database:", self.name);
        let (kind, key) = match self.draft.dialect {
            Dialect::Postgres => ("postgres", "url"),
            Dialect::Mysql => ("mysql", "url"),
            Dialect::Sqlite => ("sqlite", "path"),
        };
        let _ = writeln!(out, "      {kind}:\n        {key}: ${{{}}}", self.variable);
        self.lookup(&mut out);
        self.pending(&mut out);
        self.notifications(&mut out);
        self.attempts(&mut out);
        self.partition(&mut out);
        let _ = writeln!(
            out,
            "    # GUESS: at least your service's longest request timeout and transaction.\n    overlap: 60s"
        );
        self.statuses(&mut out);
        out
    }

    fn remarks(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "# Proposed by `delivery-canary ledger init`. Put it into your configuration, look at every line that says GUESS or MISSING, then\n\
             # run `delivery-canary ledger grants` and `delivery-canary ledger check`. ${{{}}} is the address for the monitor's own role.",
            self.variable
        );
        for remark in &self.remarks {
            let word = match remark.sure {
                Some(Sure::Recognised) => "recognised",
                Some(Sure::Guess) => "GUESS     ",
                None => "MISSING   ",
            };
            let _ = writeln!(out, "# {word}  {}", one_line(&remark.text));
        }
        for (statements, what_for) in &self.missing {
            let what_for = one_line(what_for);
            if let [only] = statements.as_slice() {
                let _ = writeln!(out, "# MISSING     an index {what_for}: {}", one_line(only));
                continue;
            }
            let _ = writeln!(
                out,
                "# MISSING     an index {what_for}, on a table with partitions. Step by step, each outside of a transaction:"
            );
            for statement in statements {
                let _ = writeln!(out, "#                 {};", one_line(statement));
            }
        }
    }

    fn query(out: &mut String, name: &str, sql: &str, columns: &[(&str, String)]) {
        let _ = writeln!(out, "    {name}:\n      sql: |");
        for line in sql.lines() {
            // A variable would be put in.
            let _ = writeln!(out, "        {}", line.replace("${", "$${"));
        }
        let _ = writeln!(out, "      columns:");
        for (role, column) in columns {
            let _ = writeln!(out, "        {role}: {column}");
        }
    }

    fn routes(&self, out: &mut String) {
        let _ = writeln!(out, "      routes:");
        for RouteWord { word, route, why } in &self.routes {
            let (word, why) = (scalar(word), one_line(why));
            let _ = match route {
                Some(route) => writeln!(out, "        {word}: {route} # {why}"),
                None => writeln!(out, "        # {word}: channel/name # {why}"),
            };
        }
    }

    fn lookup(&self, out: &mut String) {
        let (units, times) = (&self.draft.units, &self.times);
        let mut columns = vec![("notification_id", "notification_id".to_owned())];
        let mut add = |is_there: bool, role: &'static str, column: String| {
            if is_there {
                columns.push((role, column));
            }
        };
        add(units.destination.is_some(), "destination", "destination".into());
        add(units.idempotency_key.is_some(), "idempotency_key", "idempotency_key".into());
        add(units.route.is_some(), "route", "route".into());
        add(true, "accepted_at", time("accepted_at", times.accepted_at));
        add(units.not_before.is_some(), "not_before", time("not_before", times.not_before));
        add(units.status.is_some(), "status", "status".into());
        if let Some(attempts) = &self.draft.attempts {
            add(true, "attempt_id", "attempt_id".into());
            add(true, "attempt_status", "attempt_status".into());
            add(true, "attempt_at", time("attempt_at", times.at));
            add(attempts.next.is_some(), "next_attempt", "next_attempt".into());
            add(attempts.policy.is_some(), "policy_version", "policy_version".into());
        }
        Self::query(out, "lookup", &self.draft.lookup(), &columns);
    }

    fn pending(&self, out: &mut String) {
        let Some(sql) = self.draft.pending() else {
            let _ = writeln!(
                out,
                "    # There is no `pending` query: nothing says what is settled, so it would have to read everything, each time."
            );
            return;
        };
        let (units, times) = (&self.draft.units, &self.times);
        let mut columns = Vec::new();
        if units.route.is_some() {
            columns.push(("route", "route".to_owned()));
        }
        columns.push(("accepted_at", time("accepted_at", times.accepted_at)));
        if units.not_before.is_some() {
            columns.push(("not_before", time("not_before", times.not_before)));
        }
        columns.push(("status", "status".into()));
        if self.draft.pending_counts() {
            columns.push(("count", "n".into()));
        }
        Self::query(out, "pending", &sql, &columns);
        self.routes(out);
    }

    fn notifications(&self, out: &mut String) {
        let (units, times) = (&self.draft.units, &self.times);
        let mut columns = vec![("notification_id", "notification_id".to_owned())];
        let mut add = |is_there: bool, role: &'static str, column: String| {
            if is_there {
                columns.push((role, column));
            }
        };
        add(units.destination.is_some(), "destination", "destination".into());
        add(units.idempotency_key.is_some(), "idempotency_key", "idempotency_key".into());
        add(units.route.is_some(), "route", "route".into());
        add(units.canary.is_some(), "canary", "is_canary".into());
        add(true, "accepted_at", time("accepted_at", times.accepted_at));
        add(units.not_before.is_some(), "not_before", time("not_before", times.not_before));
        add(units.status.is_some(), "status", "status".into());
        Self::query(out, "notifications", &self.draft.notifications(), &columns);
        let id = if units.parent.is_some() { "unit_id" } else { "notification_id" };
        let at = time("accepted_at", times.accepted_at);
        let _ = writeln!(out, "      cursor:\n        at: {at}\n        id: {id}");
        self.routes(out);
    }

    fn attempts(&self, out: &mut String) {
        let (Some(sql), Some(attempts)) = (self.draft.attempts(), &self.draft.attempts) else { return };
        let times = &self.times;
        let mut columns =
            vec![("attempt_id", "attempt_id".to_owned()), ("notification_id", "notification_id".into())];
        if self.draft.units.destination.is_some() {
            columns.push(("destination", "destination".into()));
        }
        columns.push(("status", "status".into()));
        columns.push(("at", time("at", times.at)));
        if attempts.next.is_some() {
            columns.push(("next_attempt", "next_attempt".into()));
        }
        Self::query(out, "attempts", &sql, &columns);
        let at = if attempts.ended.is_some() { time("ended_at", times.ended) } else { time("at", times.at) };
        let _ = writeln!(out, "      cursor:\n        at: {at}\n        id: attempt_id");
    }

    fn partition(&self, out: &mut String) {
        let mut columns = Vec::new();
        if self.draft.units.route.is_some() {
            columns.push(("route", "route".to_owned()));
        }
        columns.extend([("status", "status".to_owned()), ("count", "n".to_owned())]);
        Self::query(out, "partition", &self.draft.partition(), &columns);
        self.routes(out);
    }

    fn statuses(&self, out: &mut String) {
        let _ = writeln!(out, "    statuses:");
        for StatusWord { word, meaning, why } in &self.draft.statuses {
            let why = why.as_deref().map_or_else(
                || {
                    "GUESS: it says nothing to us, and counts as unknown until you say what it means"
                        .to_owned()
                },
                |why| format!("GUESS: {}", one_line(why)),
            );
            let word = scalar(word.as_deref().unwrap_or("null"));
            let _ = writeln!(out, "      {word}: {} # {why}", meaning::name(*meaning));
        }
    }
}

/// A time's column, with what its values are.
fn time(name: &str, written: Written) -> String {
    let form = match written {
        Written::ByType => return name.to_owned(),
        Written::Naive(false) => "time: naive_utc",
        // It is ahead of us, so it is no UTC; where it is kept, nobody can tell.
        Written::Naive(true) => "time: naive_local, zone: Europe/Berlin",
        Written::Seconds => "time: epoch_seconds",
        Written::Millis => "time: epoch_millis",
        Written::Iso | Written::Unclear => "time: iso",
    };
    format!("{{ name: {name}, {form} }}")
}

/// A word as a key of YAML, in which no variable is put.
fn scalar(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

/// A text that stays in its comment.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
