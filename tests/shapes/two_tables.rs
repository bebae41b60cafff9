//! The guide's example of attempts and outcomes in two tables, word for word, on a real database.

use super::{bed::Database, plain::Plain, postgres::Postgres, watch::Watch};
use delivery_canary::{
    config::{self, Loaded, scalar::Span},
    ledger::{self, check::Level},
};

const GUIDE: &str = include_str!("../../docs/ledger.md");
const MINIMAL: &str = include_str!("../../config/minimal.yaml");

const PLAIN: Plain = Plain {
    units: "select 'webhook/receipts' as route,
                   coalesce((select case o.status when 'delivered' then 'delivered' when 'bounced' then 'rejected_recipient'
                                    else 'rejected_service' end
                               from attempts a join outcomes o on o.attempt_id = a.id
                              where a.notification_id = n.id and o.status in ('delivered', 'bounced', 'refused')
                              order by a.started_at desc, a.id desc limit 1),
                            (select case o.status when 'again' then 'retrying' else 'unknown' end
                               from attempts a join outcomes o on o.attempt_id = a.id
                              where a.notification_id = n.id order by a.started_at desc, a.id desc limit 1),
                            'unattempted') as stands,
                   (extract(epoch from n.accepted_at) * 1000000)::bigint as due
              from notifications n where not n.is_canary",
    attempts: Some(
        "select 'webhook/receipts' as route,
                case o.status when 'delivered' then 'delivered' when 'again' then 'retryable' when 'timed_out' then 'unknown'
                     else 'permanent_rejection' end as outcome,
                (extract(epoch from a.started_at) * 1000000)::bigint as at
           from outcomes o join attempts a on a.id = o.attempt_id join notifications n on n.id = a.notification_id
          where not n.is_canary",
    ),
};

/// A block of the section, of this language.
fn block(language: &str) -> &'static str {
    let section =
        GUIDE.split_once("### Attempts and outcomes in two tables").expect("the guide has the section").1;
    let text = section.split_once(&format!("```{language}\n")).expect("the section has the block").1;
    text.split_once("```").expect("the block ends").0
}

/// The section's ledger as part of the least configuration that works.
fn configuration(url: &str) -> Loaded {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.yaml");
    let lines = block("yaml").lines().map(|line| match line.trim_start().starts_with("url: ") {
        true => format!("        url: {url}\n"),
        false => format!("    {line}\n"),
    });
    let ledger: String = lines.collect();
    std::fs::write(&file, format!("{MINIMAL}    ledger: guide\nledgers:\n  guide:\n{ledger}"))
        .expect("the file is written");
    let env = |name: &str| (name == "TOKEN_SECRET").then(|| "0123456789abcdef0123456789abcdef".to_owned());
    config::load(&file, &env).unwrap_or_else(|faults| panic!("{faults}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_and_outcomes_in_two_tables() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let database = Database { url: url.clone() };
    database.execute(block("sql")).await;
    // Of each eight: without an attempt, one under way, tried again once or twice, delivered, timed out, and both kinds of rejection.
    database
        .execute(
            "insert into notifications (idempotency_key, route, is_canary, accepted_at)
             select 'k' || g, 'payment_receipts', g % 50 = 7, now() - make_interval(secs => 120 + 60 * g) from generate_series(0, 299) as g;
             insert into attempts (notification_id, started_at)
             select n.id, n.accepted_at + make_interval(secs => 5 * tries.t)
               from notifications n cross join lateral generate_series(1, (array[0, 1, 1, 2, 1, 1, 2, 1])[1 + n.id % 8]) as tries (t);
             insert into outcomes (attempt_id, status, at)
             select a.id, case when n.id % 8 = 3 and a.started_at < n.accepted_at + interval '6 seconds' then 'again'
                               else (array['', '', 'again', 'delivered', 'delivered', 'timed_out', 'bounced', 'refused'])[1 + n.id % 8] end,
                    a.started_at + interval '2 seconds'
               from attempts a join notifications n on n.id = a.notification_id where n.id % 8 <> 1;
             analyze",
        )
        .await;
    let mut loaded = configuration(&url.replacen("postgres@", "canary_reader@", 1));
    let config = loaded.config.ledgers.get_mut("guide").expect("the ledger is configured");
    for finding in ledger::open("guide", config).expect("the ledger can be read").check().await {
        assert_eq!(finding.level, Level::Ok, "{finding:?}");
    }
    (config.overlap, config.max_rows) = (Span::seconds(15), 70);
    let mut watch = Watch::new(&loaded, "guide").await;
    watch.until_agreed("the history", &database, &PLAIN).await;
    assert_eq!(watch.began_anew(), Some(true));
    watch.restart();
    watch.until_agreed("the history after a restart", &database, &PLAIN).await;
    assert_eq!(watch.began_anew(), Some(false));

    // Outcomes that come hours after their attempts began, and a bounce of what was delivered.
    database
        .execute(
            "insert into outcomes (attempt_id, status, at)
             select a.id, (array['delivered', 'again', 'refused'])[1 + (a.id % 3)::int], clock_timestamp()
               from attempts a where not exists (select from outcomes o where o.attempt_id = a.id);
             with bounced as (insert into attempts (notification_id, started_at)
                              select id, clock_timestamp() from notifications where id % 8 = 4 order by id limit 5 returning id)
             insert into outcomes (attempt_id, status, at) select id, 'bounced', clock_timestamp() from bounced",
        )
        .await;
    watch.until_agreed("what came late", &database, &PLAIN).await;
}
