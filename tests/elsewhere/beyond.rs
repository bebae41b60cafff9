//! What was stuck before the history that is followed.

use super::{FULL, Service, world::until};
use chrono::{TimeDelta, Utc};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stuck_and_older_than_the_history_is_counted_by_the_pending_query() {
    let service = Service::new(None, "2s").await;
    let now = Utc::now();
    for (id, hours) in [(1, 72), (2, 48), (3, 14), (4, 2)] {
        service.message(id, "receipts", now - TimeDelta::hours(hours), &[("a", &["again"])]).await;
    }
    service.message(5, "receipts", now - TimeDelta::hours(72), &[("a", &["ok"])]).await;
    let text = fs::read_to_string(&service.place.config).expect("it was written");
    let (head, tail) = text.split_once("    statuses: {").expect("there are statuses");
    let lines = format!(
        r#"    history: 1d
    baseline: {}
    pending:
      sql: |
        select m.route, m.made_at, c.result, count(*) as n from message m left join call c on c.message_id = m.id
        where c.result is null or c.result = 'again' group by 1, 2, 3 limit :limit
      columns: {{ route: route, accepted_at: {{ name: made_at, time: iso }}, status: result, count: n }}
      routes: {{ receipts: webhook/receipts }}
"#,
        (now - TimeDelta::hours(12)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    );
    fs::write(&service.place.config, format!("{head}{lines}    statuses: {{{tail}"))
        .expect("it can be written");
    let _monitor = service.place.serve();
    service.until_followed();
    until("all three to be counted apart", 40, || {
        let seen = service.place.value("delivery_ledger_stuck_before_baseline", &[("route", FULL)]);
        if seen == Some(3.0) { Ok(()) } else { Err(format!("{seen:?}; log:\n{}", service.place.log())) }
    });
    service.until_pending(1);
}
