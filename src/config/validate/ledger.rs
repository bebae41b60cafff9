//! Ledgers.

pub(super) mod apart;
mod audit;
mod elsewhere;
mod following;

use super::{names::refer_route, sql, times};
use crate::{
    config::{
        draft::Draft,
        ledger::{Column, Ledger, LedgerDatabase, TimeForm},
        model::StoreConfig,
        report::{At, Report},
        scalar::Span,
    },
    domain::schedule::parse_zone,
};
use std::{collections::BTreeMap, time::Duration};

/// Longest limit on one statement. The limits of the loops that read ledgers are above it.
const LONGEST_STATEMENT: Duration = Duration::from_secs(20);

pub(super) fn check(ledger: &Ledger, draft: &Draft, at: &At, report: &mut Report) {
    database(&ledger.database, draft, &at.key("database"), report);
    lookup(ledger, at, report);
    pending(ledger, draft, at, report);
    following::check(ledger, draft, at, report);
    audit::check(ledger, at, report);
    elsewhere::check(ledger, draft, at, report);
    if ledger.statuses.is_empty() {
        let hint = "write what each of the ledger's own words means, such as `sent: delivered`";
        report.fault(&at.key("statuses"), "no status is mapped: everything would be `unknown`", hint);
    }
    times::limit(ledger.statement_timeout, &at.key("statement_timeout"), report);
    if ledger.statement_timeout.get() > LONGEST_STATEMENT {
        report.fault(
            &at.key("statement_timeout"),
            format!(
                "`statement_timeout` is {}, and for so long a verdict could wait for one reading",
                ledger.statement_timeout
            ),
            format!("write at most {}, and an index for a query that takes longer", Span(LONGEST_STATEMENT)),
        );
    }
    times::limit(ledger.freshness, &at.key("freshness"), report);
    if ledger.freshness < ledger.statement_timeout {
        let message = format!(
            "`freshness` is {}, and one reading may take {}",
            ledger.freshness, ledger.statement_timeout
        );
        report.fault(
            &at.key("freshness"),
            message,
            "write more than `statement_timeout`, or no reading is fresh",
        );
    }
    if ledger.refresh_every.get() < Duration::from_secs(1)
        || ledger.refresh_every.get() > Duration::from_secs(3600)
    {
        report.fault(
            &at.key("refresh_every"),
            format!("a refresh every {}", ledger.refresh_every),
            "write 1s to 1h",
        );
    }
    if ledger.overlap.get() > Duration::from_secs(86_400) {
        report.fault(&at.key("overlap"), format!("an overlap of {}", ledger.overlap), "write at most 1d");
    }
    if !(1..=1_000_000).contains(&ledger.max_rows) {
        report.fault(&at.key("max_rows"), format!("`max_rows` is {}", ledger.max_rows), "write 1 to 1000000");
    }
}

fn database(database: &LedgerDatabase, draft: &Draft, at: &At, report: &mut Report) {
    match (database, &draft.store) {
        (LedgerDatabase::Postgres(postgres), store) => {
            let at = at.key("postgres");
            postgres_url(postgres.url.expose(), &at.key("url"), report);
            connections(postgres.max_connections, &at, report);
            if matches!(store, Some(StoreConfig::Postgres(store)) if store.url == postgres.url) {
                let hint =
                    "give the store a database and a role of its own; the ledger's role must not write";
                report.fault(&at.key("url"), "the ledger and the store are one database with one role", hint);
            }
        }
        (LedgerDatabase::Mysql(mysql), _) => {
            let at = at.key("mysql");
            mysql_url(mysql.url.expose(), &at.key("url"), report);
            connections(mysql.max_connections, &at, report);
        }
        (LedgerDatabase::Sqlite(sqlite), store) => {
            let at = at.keys(&["sqlite", "path"]);
            if sqlite.path.as_os_str().is_empty() {
                report.fault(&at, "the path is empty", "write the file's path");
            } else if matches!(store, Some(StoreConfig::Sqlite(store)) if store.path == sqlite.path) {
                report.fault(
                    &at,
                    "the ledger and the store are one file",
                    "give the store a file of its own",
                );
            }
        }
    }
}

fn connections(most: u32, at: &At, report: &mut Report) {
    if !(1..=2).contains(&most) {
        let message = format!("{most} connections to somebody else's database");
        report.fault(&at.key("max_connections"), message, "write 1 or 2");
    }
}

/// A MySQL or MariaDB URL with its database. It may hold a password: nothing of it is said.
fn mysql_url(url: &str, at: &At, report: &mut Report) {
    let schemed = url.starts_with("mysql://") || url.starts_with("mariadb://");
    let parsed = reqwest::Url::parse(url).ok().filter(|url| schemed && url.host().is_some());
    let hint = "write `mysql://user:${PASSWORD}@host/database`, with special characters of the password escaped by `%`";
    match parsed {
        None => report.fault(at, "this is not a MySQL URL", hint),
        Some(url) if url.path().trim_matches('/').is_empty() => {
            report.fault(at, "the URL names no database", hint);
        }
        Some(_) => {}
    }
}

/// A PostgreSQL URL. It may hold a password: nothing of it is said.
pub(super) fn postgres_url(url: &str, at: &At, report: &mut Report) {
    let sound = (url.starts_with("postgres://") || url.starts_with("postgresql://"))
        && reqwest::Url::parse(url).is_ok();
    if !sound {
        let hint = "write `postgres://user:${PASSWORD}@host/database`, with special characters of the password escaped by `%`";
        report.fault(at, "this is not a PostgreSQL URL", hint);
    }
}

fn lookup(ledger: &Ledger, at: &At, report: &mut Report) {
    let at = at.key("lookup");
    let known: &[&str] = match &ledger.database {
        LedgerDatabase::Mysql(_) => &["ids", "ids_as_bytes", "keys", "limit", "now", "now_ms", "overlap"],
        LedgerDatabase::Postgres(_) | LedgerDatabase::Sqlite(_) => {
            &["ids", "keys", "limit", "now", "now_ms", "overlap"]
        }
    };
    let seen = statement(&ledger.lookup.sql, ledger, known, &at.key("sql"), report);
    let by_key = seen.parameters.contains("keys");
    if !by_id(ledger) && !by_key {
        let hint = how_to_ask_by_id(ledger);
        report.fault(&at.key("sql"), "the lookup binds neither `:ids` nor `:keys`", hint);
    }
    let columns = &ledger.lookup.columns;
    let columns_at = at.key("columns");
    if by_key && columns.idempotency_key.is_none() {
        let hint = "name the column of the key, so that a row can be told to be the canary's";
        report.fault(&columns_at, "the lookup binds `:keys`, and no column is the `idempotency_key`", hint);
    }
    if columns.status.is_none() && columns.attempt_status.is_none() {
        let hint = "name `status` (of the notification) or `attempt_status`";
        report.fault(&columns_at, "no column says where a notification stands", hint);
    }
    if columns.attempt_status.is_some() && columns.attempt_id.is_none() {
        report.fault(
            &columns_at,
            "`attempt_status` has no `attempt_id` beside it",
            "name the column of the attempt's id",
        );
    }
    let all = [
        ("notification_id", Some(&columns.notification_id)),
        ("idempotency_key", columns.idempotency_key.as_ref()),
        ("destination", columns.destination.as_ref()),
        ("route", columns.route.as_ref()),
        ("accepted_at", columns.accepted_at.as_ref()),
        ("not_before", columns.not_before.as_ref()),
        ("status", columns.status.as_ref()),
        ("attempt_id", columns.attempt_id.as_ref()),
        ("attempt_status", columns.attempt_status.as_ref()),
        ("attempt_at", columns.attempt_at.as_ref()),
        ("next_attempt", columns.next_attempt.as_ref()),
        ("policy_version", columns.policy_version.as_ref()),
    ];
    for (key, column) in all {
        check_column(key, column, &columns_at, report);
    }
}

fn pending(ledger: &Ledger, draft: &Draft, at: &At, report: &mut Report) {
    let Some(pending) = &ledger.pending else { return };
    let at = at.key("pending");
    statement(&pending.sql, ledger, &["limit", "now", "now_ms", "overlap"], &at.key("sql"), report);
    let columns = &pending.columns;
    let columns_at = at.key("columns");
    let all = [
        ("route", columns.route.as_ref()),
        ("accepted_at", Some(&columns.accepted_at)),
        ("not_before", columns.not_before.as_ref()),
        ("status", columns.status.as_ref()),
        ("count", columns.count.as_ref()),
    ];
    for (key, column) in all {
        check_column(key, column, &columns_at, report);
    }
    routes(&pending.routes, columns.route.is_some(), draft, &at, report);
}

/// A map from the service's words to routes.
fn routes(routes: &BTreeMap<String, String>, has_column: bool, draft: &Draft, at: &At, report: &mut Report) {
    let routes_at = at.key("routes");
    for (word, route) in routes {
        refer_route(route, draft, &routes_at.key(word), report);
    }
    if routes.is_empty() {
        report.fault(
            &routes_at,
            "no notification belongs to a route",
            "write `\"*\": channel/name` for one route",
        );
    } else if !has_column && routes.keys().any(|word| word != "*") {
        let hint = "name the column of the service's word for the route, or write only `\"*\"`";
        report.fault(&at.key("columns"), "`routes` maps words, and no column is the `route`", hint);
    }
}

/// A look at SQL of this ledger.
pub(super) fn look(text: &str, database: &LedgerDatabase) -> sql::Seen {
    match database {
        LedgerDatabase::Mysql(_) => sql::look_mysql(text),
        LedgerDatabase::Postgres(_) | LedgerDatabase::Sqlite(_) => sql::look(text),
    }
}

/// Whether the lookup asks by id.
fn by_id(ledger: &Ledger) -> bool {
    let seen = look(&ledger.lookup.sql, &ledger.database);
    seen.parameters.contains("ids") || seen.parameters.contains("ids_as_bytes")
}

fn how_to_ask_by_id(ledger: &Ledger) -> &'static str {
    match &ledger.database {
        LedgerDatabase::Postgres(_) => "write `where id = any(:ids)`",
        LedgerDatabase::Mysql(_) => {
            "write `where id in (:ids)`, or for a BINARY(16) `where id in (:ids_as_bytes)`"
        }
        LedgerDatabase::Sqlite(_) => "write `where id in (select value from json_each(:ids))`",
    }
}

fn statement(text: &str, ledger: &Ledger, known: &[&str], at: &At, report: &mut Report) -> sql::Seen {
    statement_on(&ledger.database, text, known, at, report)
}

fn statement_on(
    database: &LedgerDatabase,
    text: &str,
    known: &[&str],
    at: &At,
    report: &mut Report,
) -> sql::Seen {
    let seen = look(text, database);
    if seen.verb.is_empty() {
        report.fault(at, "there is no SQL", "write a `select`");
    } else if !matches!(seen.verb.as_str(), "select" | "with" | "values" | "table") {
        report.fault(
            at,
            format!("a ledger is only read, and this starts with `{}`", seen.verb),
            "write a `select`",
        );
    } else if let Some(verb) = &seen.change {
        report.fault(
            at,
            format!("a ledger is only read, and this has a `with` that changes rows by `{verb}`"),
            "write a `select`, also in each part of the `with`",
        );
    }
    if seen.several {
        report.fault(at, "several statements stand here", "write one");
    }
    for name in seen.parameters.iter().filter(|name| !known.contains(&name.as_str())) {
        let hint = crate::config::near::hint(name, known.iter().copied());
        report.fault(at, format!("there is no parameter `:{name}` here"), hint);
    }
    seen
}

fn check_column(key: &str, column: Option<&Column>, at: &At, report: &mut Report) {
    let Some(column) = column else { return };
    let at = at.key(key);
    if column.name().is_empty() {
        report.fault(&at, "the column's name is empty", "write the name that it has in the result");
    }
    let Column::Typed(typed) = column else { return };
    if !matches!(key, "accepted_at" | "not_before" | "attempt_at" | "at") {
        report.fault(&at.key("time"), format!("`{key}` is not a time"), "write the column's name alone");
    }
    match (&typed.zone, typed.time) {
        (Some(zone), TimeForm::NaiveLocal) => {
            if let Err(error) = parse_zone(zone) {
                report.fault(&at.key("zone"), error.to_string(), "");
            }
        }
        (None, TimeForm::NaiveLocal) => {
            report.fault(&at, "the zone of this local time is missing", "write `zone: Europe/Berlin`, say");
        }
        (Some(_), _) => {
            report.fault(&at.key("zone"), "only a `naive_local` time has a zone", "leave it out");
        }
        (None, _) => {}
    }
}
