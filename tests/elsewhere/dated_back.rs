//! Rows that come behind the cursor: imported, or dated back by more than the overlap.

use super::{FULL, Service, json, postgres::Postgres, reconcile, world::until};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::fs;

/// An hour that is long closed, and an instant in it.
fn earlier() -> (DateTime<Utc>, DateTime<Utc>) {
    let hour =
        (Utc::now() - TimeDelta::hours(3)).duration_trunc(TimeDelta::hours(1)).expect("a time of today");
    (hour, hour + TimeDelta::minutes(20))
}

/// Writes the configuration with these lines of the ledger.
fn with_lines(service: &Service, lines: &str) {
    let text = fs::read_to_string(&service.place.config).expect("it was written");
    let (head, tail) = text.split_once("    statuses: {").expect("there are statuses");
    fs::write(&service.place.config, format!("{head}{lines}    statuses: {{{tail}"))
        .expect("it can be written");
}

/// Waits until one more was found, and is pending since it was due.
fn until_found(service: &Service, found: f64, due: DateTime<Utc>) {
    until("what came behind the cursor to be found", 60, || {
        let page = service.place.scrape().ok_or("no page")?;
        let seen = (
            page.value("delivery_ledger_dated_back", &[("ledger", "attempts")]),
            page.value("delivery_ledger_oldest_pending_due_timestamp_seconds", &[("route", FULL)]),
            page.value("delivery_ledger_pending_unseen", &[("ledger", "attempts")]),
        );
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let expected = (Some(found), Some(due.timestamp() as f64), Some(0.0));
        if seen == expected {
            Ok(())
        } else {
            Err(format!("{seen:?}, not {expected:?}; log:\n{}", service.place.log()))
        }
    });
}

async fn what_is_dated_back_is_found_by_the_exact_count(service: Service) {
    let (hour, at) = earlier();
    // With 31 days of history the next older hour has its turn at each refresh.
    with_lines(&service, "    dated_back: { within: 10m }\n");
    service.message(1, "receipts", at, &[("a", &["ok"])]).await;
    service.message(2, "receipts", Utc::now() - TimeDelta::minutes(10), &[("a", &["again"])]).await;
    let text = fs::read_to_string(&service.place.config).expect("it was written");
    fs::write(
        &service.place.config,
        text.replace("dated_back: { within: 10m }", "dated_back: { within: 10m, look: false }"),
    )
    .expect("it can be written");
    let mut monitor = service.place.serve();
    service.until_followed();
    service.until_pending(1);
    assert!(service.place.log().contains("ledger_dated_back_not_looked_for"), "{}", service.place.log());
    monitor.kill();
    drop(monitor);
    service.message(3, "receipts", at, &[("a", &[])]).await;
    service.message(4, "receipts", at, &[("a", &["again"]), ("b", &["ok"])]).await;
    fs::write(&service.place.config, text).expect("it can be written");

    let _monitor = service.place.serve();
    until_found(&service, 2.0, at);
    service.until_pending(3);
    let log = service.place.log();
    assert!(log.contains("\"ledger_dated_back\"") && log.contains(&hour.to_rfc3339()), "{log}");
    // They go on as any other.
    let now = Utc::now().format("%Y-%m-%dT%H:%M:%SZ");
    service
        .execute(&format!(
            "insert into call values (9001, 3, 'a', 'ok', '{now}'), (9002, 4, 'a', 'dead', '{now}')"
        ))
        .await;
    service.until_pending(1);
    // What came settled is in no figure: the books of its hour say so.
    let answer = json(&reconcile(&service, hour, &["--json"]));
    let routes = answer["ledgers"][0]["routes"].as_array().expect("there are routes");
    let book = routes.iter().find(|book| book["route"] == FULL).expect("the route is there");
    assert_eq!(
        (&book["residue"], &book["followed"]["accepted"], &book["counted"]["accepted"]),
        (&1.into(), &3.into(), &4.into()),
        "{answer:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dated_back_is_found_by_the_exact_count_on_sqlite() {
    what_is_dated_back_is_found_by_the_exact_count(Service::new(None, "2s").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dated_back_is_found_by_the_exact_count_on_postgresql() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    what_is_dated_back_is_found_by_the_exact_count(Service::new(Some(url), "2s").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dated_back_is_found_by_the_pending_query() {
    let server = Postgres::start();
    let service = Service::new(Some(server.fresh_database().await), "2s").await;
    let (_, at) = earlier();
    let lines = r"    pending:
      sql: |
        select m.route, min(m.made_at) as made_at, c.result, count(*) as n
        from message m join target t on t.message_id = m.id left join call c on c.message_id = m.id and c.dest = t.dest
        where c.result is null or c.result = 'again' group by m.route, c.result, date_trunc('minute', m.made_at) limit :limit
      columns: { route: route, accepted_at: made_at, status: result, count: n }
      routes: { receipts: webhook/receipts }
";
    with_lines(&service, lines);
    service.message(1, "receipts", at, &[("a", &["ok"]), ("b", &["again"])]).await;
    service.message(2, "receipts", Utc::now() - TimeDelta::minutes(10), &[("a", &["again"])]).await;
    let mut monitor = service.place.serve();
    service.until_followed();
    service.until_pending(2);
    monitor.kill();
    drop(monitor);
    // Before those that are known, and two of one minute.
    let older = at - TimeDelta::hours(2);
    service.message(3, "receipts", older, &[("a", &[]), ("b", &["again"])]).await;
    service.message(4, "receipts", at, &[("a", &[])]).await;
    let _monitor = service.place.serve();
    until_found(&service, 3.0, older);
    service.until_pending(5);
}
