//! The queries of a ledger that is followed, and what they need of each other.

use super::{by_id, check_column, how_to_ask_by_id, routes, statement};
use crate::config::{
    draft::Draft,
    ledger::{AttemptsQuery, Column, Cursor, Ledger, LedgerDatabase, NotificationsQuery, PartitionQuery},
    report::{At, Report},
    validate::sql,
};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// What a stream may bind.
const OF_A_STREAM: [&str; 8] =
    ["after_ts", "after_id", "from_ts", "until_ts", "limit", "now", "now_ms", "overlap"];

pub(super) fn check(ledger: &Ledger, draft: &Draft, at: &At, report: &mut Report) {
    match &ledger.notifications {
        Some(query) => {
            notifications(ledger, query, draft, &at.key("notifications"), report);
            needs_of_following(ledger, query, at, report);
        }
        None => {
            for (key, is_there) in
                [("attempts", ledger.attempts.is_some()), ("partition", ledger.partition.is_some())]
            {
                if is_there {
                    let message = format!("`{key}` is there, and `notifications` is not");
                    report.fault(
                        &at.key(key),
                        message,
                        "write the query of the notifications too: a ledger is followed by it",
                    );
                }
            }
        }
    }
    if let Some(query) = &ledger.attempts {
        attempts(ledger, query, &at.key("attempts"), report);
    }
    if let Some(query) = &ledger.partition {
        partition(ledger, query, draft, &at.key("partition"), report);
    }
    limits(ledger, at, report);
}

fn notifications(ledger: &Ledger, query: &NotificationsQuery, draft: &Draft, at: &At, report: &mut Report) {
    stream(ledger, &query.sql, &query.cursor, at, report);
    let columns = &query.columns;
    let all = [
        ("notification_id", Some(&columns.notification_id)),
        ("idempotency_key", columns.idempotency_key.as_ref()),
        ("destination", columns.destination.as_ref()),
        ("route", columns.route.as_ref()),
        ("accepted_at", Some(&columns.accepted_at)),
        ("not_before", columns.not_before.as_ref()),
        ("status", columns.status.as_ref()),
        ("canary", columns.canary.as_ref()),
    ];
    check_columns(&all, &at.key("columns"), report);
    routes(&query.routes, columns.route.is_some(), draft, at, report);
}

fn attempts(ledger: &Ledger, query: &AttemptsQuery, at: &At, report: &mut Report) {
    stream(ledger, &query.sql, &query.cursor, at, report);
    let columns = &query.columns;
    let all = [
        ("attempt_id", Some(&columns.attempt_id)),
        ("notification_id", Some(&columns.notification_id)),
        ("destination", columns.destination.as_ref()),
        ("status", Some(&columns.status)),
        ("at", Some(&columns.at)),
        ("next_attempt", columns.next_attempt.as_ref()),
    ];
    check_columns(&all, &at.key("columns"), report);
}

fn partition(ledger: &Ledger, query: &PartitionQuery, draft: &Draft, at: &At, report: &mut Report) {
    let known = ["from_ts", "until_ts", "limit", "now", "now_ms", "overlap"];
    let seen = statement(&query.sql, ledger, &known, &at.key("sql"), report);
    for name in ["from_ts", "until_ts"] {
        if !seen.parameters.contains(name) {
            let hint = "count what was due in an interval: `where due_at >= :from_ts and due_at < :until_ts`";
            report.fault(&at.key("sql"), format!("the partition does not bind `:{name}`"), hint);
        }
    }
    let columns = &query.columns;
    let all = [
        ("route", columns.route.as_ref()),
        ("status", Some(&columns.status)),
        ("count", Some(&columns.count)),
    ];
    check_columns(&all, &at.key("columns"), report);
    routes(&query.routes, columns.route.is_some(), draft, at, report);
}

/// A stream can be read only in pages behind a place.
fn stream(ledger: &Ledger, text: &str, cursor: &Cursor, at: &At, report: &mut Report) {
    let seen = statement(text, ledger, &OF_A_STREAM, &at.key("sql"), report);
    let at_sql = at.key("sql");
    let with_time = match &ledger.database {
        // They read no index by a comparison of rows.
        LedgerDatabase::Mysql(_) => {
            "end it with `where made_at >= :after_ts and (made_at > :after_ts or id > :after_id) order by made_at, id limit :limit`"
        }
        LedgerDatabase::Postgres(_) | LedgerDatabase::Sqlite(_) => {
            "end it with `where (made_at, id) > (:after_ts, :after_id) order by made_at, id limit :limit`"
        }
    };
    let by_id = "end it with `where id > :after_id order by id limit :limit`";
    let hint = if cursor.at.is_some() { with_time } else { by_id };
    for name in ["after_id", "limit"] {
        missing(&seen, name, hint, &at_sql, report);
    }
    if cursor.at.is_some() {
        missing(&seen, "after_ts", hint, &at_sql, report);
    } else if seen.parameters.contains("after_ts") {
        let hint = "name the column of that time as `cursor.at`";
        report.fault(&at.key("cursor"), "the SQL binds `:after_ts`, and the cursor has no time", hint);
    }
    check_columns(&[("at", cursor.at.as_ref()), ("id", Some(&cursor.id))], &at.key("cursor"), report);
}

fn missing(seen: &sql::Seen, name: &str, hint: &str, at: &At, report: &mut Report) {
    if !seen.parameters.contains(name) {
        report.fault(at, format!("a stream is read in pages, and this does not bind `:{name}`"), hint);
    }
}

fn check_columns(all: &[(&str, Option<&Column>)], at: &At, report: &mut Report) {
    for (key, column) in all {
        check_column(key, *column, at, report);
    }
}

/// A followed ledger is asked again by id, and everything that tells notifications apart has to be there each time.
fn needs_of_following(ledger: &Ledger, query: &NotificationsQuery, at: &At, report: &mut Report) {
    let (columns, lookup) = (&query.columns, &ledger.lookup.columns);
    if columns.status.is_none() && ledger.attempts.is_none() {
        let hint =
            "name the notification's own `status`, or write the query of the `attempts`: else all is pending";
        report.fault(
            &at.keys(&["notifications", "columns"]),
            "nothing says where a notification stands",
            hint,
        );
    }
    let lookup_at = at.keys(&["lookup", "columns"]);
    if !by_id(ledger) {
        report.fault(
            &at.keys(&["lookup", "sql"]),
            "a followed ledger is asked by id, and the lookup binds no `:ids`",
            how_to_ask_by_id(ledger),
        );
    }
    if columns.status.is_some() && lookup.status.is_none() {
        report.fault(
            &lookup_at,
            "`notifications` has a `status`, and the lookup has none",
            "name the notification's own status: what is read again must say the same",
        );
    }
    if ledger.attempts.is_some() && (lookup.attempt_status.is_none() || lookup.attempt_at.is_none()) {
        report.fault(
            &lookup_at,
            "`attempts` is there, and the lookup shows no attempts with their time",
            "name `attempt_id`, `attempt_status` and `attempt_at`: what is read again must say the same",
        );
    }
    let fans_out = columns.destination.is_some();
    let of_attempts = ledger.attempts.as_ref().map(|query| query.columns.destination.is_some());
    let word = |has: bool| if has { "has" } else { "has no" };
    for (whose, has, at) in [
        ("the lookup", Some(lookup.destination.is_some()), &lookup_at),
        ("`attempts`", of_attempts, &at.keys(&["attempts", "columns"])),
    ] {
        if let Some(has) = has.filter(|has| *has != fans_out) {
            let message =
                format!("{whose} {} `destination`, and `notifications` {} one", word(has), word(fans_out));
            report.fault(at, message, "name it in all of them, or in none");
        }
    }
    let of_attempts = ledger.attempts.as_ref().is_some_and(|query| query.columns.next_attempt.is_some());
    if of_attempts != lookup.next_attempt.is_some() && ledger.attempts.is_some() {
        let message = "`next_attempt` is in one of `lookup` and `attempts`, and not in the other";
        report.fault(&lookup_at, message, "name it in both: what is read again must say the same");
    }
}

fn limits(ledger: &Ledger, at: &At, report: &mut Report) {
    if ledger.history.get() < DAY || ledger.history.get() > DAY * 400 {
        report.fault(&at.key("history"), format!("a history of {}", ledger.history), "write 1d to 400d");
    }
    let within = ledger.dated_back.within;
    if within.get() < Duration::from_secs(600) || within.get() > DAY * 31 {
        report.fault(&at.keys(&["dated_back", "within"]), format!("within {within}"), "write 10m to 31d");
    }
    let in_range = |value: u32, least: u32, most: u32, keys: &[&str], report: &mut Report| {
        if !(least..=most).contains(&value) {
            let name = keys.last().copied().unwrap_or_default();
            report.fault(&at.keys(keys), format!("`{name}` is {value}"), format!("write {least} to {most}"));
        }
    };
    let first_read = ledger.first_read.rows_per_second;
    in_range(first_read, 100, 10_000_000, &["first_read", "rows_per_second"], report);
    in_range(ledger.reread.per_refresh, 1, 20_000, &["reread", "per_refresh"], report);
    in_range(ledger.max_pending, 1_000, 20_000_000, &["max_pending"], report);
}
