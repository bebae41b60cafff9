//! The independent count of the accepted.

use super::{check_column, database, routes, statement, statement_on};
use crate::config::{
    draft::Draft,
    ledger::{
        AcceptedColumns, AcceptedElsewhere, AcceptedSource, AcceptedSql, Column, Ledger, PrometheusText,
        Promql,
        promql::{PLACEHOLDERS, Piece, pieces},
    },
    near,
    report::{At, Report},
    scalar::{Secret, Span},
    validate::{names::refer_route, sql, text},
};
use reqwest::header::HeaderValue;
use std::{collections::BTreeMap, time::Duration};

pub(super) fn check(ledger: &Ledger, draft: &Draft, at: &At, report: &mut Report) {
    let Some(elsewhere) = &ledger.accepted_elsewhere else { return };
    let at = at.key("accepted_elsewhere");
    if ledger.notifications.is_none() {
        let hint = "write the query of the notifications too: what isn't followed can't be held against it";
        report.fault(&at, "`accepted_elsewhere` is there, and `notifications` is not", hint);
    }
    let source_at = at.key("source");
    match &elsewhere.source {
        AcceptedSource::PrometheusText(page) => {
            prometheus_text(page, &source_at.key("prometheus_text"), report);
            words(elsewhere, page.route_label.as_deref(), draft, &at, report);
        }
        AcceptedSource::Promql(query) => {
            promql(query, &source_at.key("promql"), report);
            words(elsewhere, query.route_label.as_deref(), draft, &at, report);
        }
        AcceptedSource::Sql(query) => {
            let source_at = source_at.key("sql");
            on_sql(query, draft, &source_at, report);
            map(&elsewhere.routes, query.columns.route.is_some(), draft, &at, &source_at, report);
        }
    }
    in_ledger(ledger, elsewhere, draft, &at.key("in_ledger"), report);
}

fn in_ledger(ledger: &Ledger, elsewhere: &AcceptedElsewhere, draft: &Draft, at: &At, report: &mut Report) {
    let Some(query) = &elsewhere.in_ledger else {
        let columns = ledger.notifications.as_ref().map(|query| &query.columns);
        for (key, why, column) in [
            (
                "not_before",
                "what is due in an hour isn't what was accepted in it",
                columns.and_then(|c| c.not_before.as_ref()),
            ),
            (
                "destination",
                "destinations are counted one by one",
                columns.and_then(|c| c.destination.as_ref()),
            ),
        ] {
            if column.is_some() {
                let hint = "write the ledger's own count of the accepted: `select route, count(*) as n … where accepted_at >= :from_ts and \
                            accepted_at < :until_ts group by route`";
                report.fault(at, format!("`notifications` has `{key}`, so {why}"), hint);
            }
        }
        return;
    };
    let known = ["from_ts", "until_ts", "limit", "now", "now_ms", "overlap"];
    let seen = statement(&query.sql, ledger, &known, &at.key("sql"), report);
    count(&seen, &query.columns, at, report);
    routes(&query.routes, query.columns.route.is_some(), draft, at, report);
}

fn on_sql(query: &AcceptedSql, draft: &Draft, at: &At, report: &mut Report) {
    database(&query.database, draft, &at.key("database"), report);
    let known = ["from_ts", "until_ts", "limit", "now", "now_ms"];
    let seen = statement_on(&query.database, &query.sql, &known, &at.key("sql"), report);
    count(&seen, &query.columns, at, report);
    check_column("accepted_at", Some(&query.accepted_at), at, report);
    edge(query.edge, Duration::from_secs(600), at, report);
}

fn count(seen: &sql::Seen, columns: &AcceptedColumns, at: &At, report: &mut Report) {
    for name in ["from_ts", "until_ts"] {
        if !seen.parameters.contains(name) {
            let hint = "count what was accepted in an interval: `where accepted_at >= :from_ts and accepted_at < :until_ts`";
            report.fault(&at.key("sql"), format!("the count of the accepted does not bind `:{name}`"), hint);
        }
    }
    let all: [(&str, Option<&Column>); 2] =
        [("route", columns.route.as_ref()), ("count", Some(&columns.count))];
    for (key, column) in all {
        check_column(key, column, &at.key("columns"), report);
    }
}

fn prometheus_text(page: &PrometheusText, at: &At, report: &mut Report) {
    text::web_address(&page.url, &at.key("url"), report);
    authorization(page.authorization.as_ref(), at, report);
    metric(&page.metric, true, &at.key("metric"), report);
    for name in page.labels.keys() {
        metric(name, false, &at.key("labels").key(name), report);
    }
    edge(page.edge, Duration::from_secs(60), at, report);
}

fn promql(query: &Promql, at: &At, report: &mut Report) {
    if let Some(url) = text::web_address(&query.url, &at.key("url"), report)
        && (url.query().is_some() || url.fragment().is_some() || url.path().contains("/api/v1"))
    {
        let hint = "write where its pages begin, such as `http://prometheus:9090`";
        report.fault(&at.key("url"), "this is more than the address of a Prometheus", hint);
    }
    authorization(query.authorization.as_ref(), at, report);
    let query_at = at.key("query");
    let names: Vec<&str> = pieces(&query.query)
        .into_iter()
        .filter_map(|piece| if let Piece::Placeholder(name) = piece { Some(name) } else { None })
        .collect();
    for name in names.iter().filter(|name| !PLACEHOLDERS.contains(name)) {
        report.fault(
            &query_at,
            format!("there is no placeholder `:{name}` here"),
            near::hint(name, PLACEHOLDERS),
        );
    }
    let has = |name: &str| names.contains(&name);
    if !has("until") || !(has("from") || has("range")) {
        let hint = "write what was counted in between: `sum by (route) (accepted_total @ :until - accepted_total @ :from)`";
        report.fault(&query_at, "the query does not say `:from` and `:until`", hint);
    }
    edge(query.edge, Duration::from_secs(600), at, report);
}

/// A name of a metric or of a label.
fn metric(name: &str, may_have_colons: bool, at: &At, report: &mut Report) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || (may_have_colons && c == ':');
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_word) {
        let what = if may_have_colons { "metric" } else { "label" };
        report.fault(
            at,
            format!("`{}` is not a {what}'s name", name.escape_debug()),
            "write it as it stands on the page, without labels",
        );
    }
}

fn authorization(value: Option<&Secret>, at: &At, report: &mut Report) {
    if value.is_some_and(|value| HeaderValue::from_str(value.expose()).is_err()) {
        report.fault(
            &at.key("authorization"),
            "this can't be a header's value",
            "write `Bearer ${TOKEN}`, say",
        );
    }
}

fn edge(edge: Span, most: Duration, at: &At, report: &mut Report) {
    if edge.get() > most || edge.get().subsec_nanos() > 0 {
        let hint = format!("write whole seconds, at most {}", Span(most));
        report.fault(&at.key("edge"), format!("an edge of {edge}"), hint);
    }
}

/// The map of a source whose words stand in a label.
fn words(elsewhere: &AcceptedElsewhere, label: Option<&str>, draft: &Draft, at: &At, report: &mut Report) {
    let kind =
        if matches!(elsewhere.source, AcceptedSource::Promql(_)) { "promql" } else { "prometheus_text" };
    let source_at = at.keys(&["source", kind]);
    if let Some(label) = label {
        metric(label, false, &source_at.key("route_label"), report);
    }
    map(&elsewhere.routes, label.is_some(), draft, at, &source_at, report);
}

fn map(
    routes: &BTreeMap<String, String>,
    has_words: bool,
    draft: &Draft,
    at: &At,
    source_at: &At,
    report: &mut Report,
) {
    let routes_at = at.key("routes");
    for (word, route) in routes {
        refer_route(route, draft, &routes_at.key(word), report);
    }
    if routes.is_empty() {
        report.fault(
            &routes_at,
            "nothing that is counted belongs to a route",
            "write `\"*\": channel/name` for one route",
        );
    } else if !has_words && routes.keys().any(|word| word != "*") {
        let hint = "name the label or column of the word for the route, or write only `\"*\"`";
        report.fault(source_at, "`routes` maps words, and nothing in the source is the route's", hint);
    }
}
