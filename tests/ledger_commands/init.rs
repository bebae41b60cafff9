//! `ledger init`: what it proposes for a shape is a configuration that counts right.

use super::{
    bed::Database,
    mariadb::Mariadb,
    plain::Plain,
    postgres::Postgres,
    run::{SECRETS, configuration, run},
    watch::Watch,
};
use delivery_canary::{
    config::{self, Loaded, scalar::Span},
    ledger::{self, check::Level},
};
use std::path::Path;

/// What is proposed for a database, by a reader of the routes of this channel `webhook`, and the configuration with it in.
pub async fn proposed(
    folder: &Path,
    database: &str,
    monitor: &str,
    routes: &[&str],
    more: &[&str],
) -> (String, Loaded) {
    let skeleton = configuration(folder, routes, "");
    let skeleton = skeleton.to_str().expect("a path that is text");
    let yaml = run(&[&["ledger", "init", "--database", database, "--config", skeleton], more].concat(), &[])
        .ended(0);
    for private in ["recipient_address", "message_body"] {
        assert!(!yaml.contains(private), "{yaml}");
    }
    let file = configuration(folder, routes, &yaml);
    let file = file.to_str().expect("a path that is text");
    let address =
        if database.starts_with("sqlite:") { ("LEDGER_FILE", monitor) } else { ("LEDGER_URL", monitor) };
    run(&["check", "--config", file], &[address]).ended(0);
    let env = |name: &str| {
        let known = SECRETS.into_iter().chain([address]);
        known.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    };
    let mut loaded = config::load(Path::new(file), &env).unwrap_or_else(|faults| panic!("{faults}"));
    let adapter = ledger::open("service", &loaded.config.ledgers["service"]).expect("the ledger can be read");
    for finding in adapter.check().await {
        assert_ne!(finding.level, Level::Failed, "{finding:?}\n{yaml}");
    }
    let ledger = loaded.config.ledgers.get_mut("service").expect("it is there");
    (ledger.overlap, ledger.max_rows) = (Span::seconds(15), 70);
    (yaml, loaded)
}

async fn counts_right(what: &str, loaded: &Loaded, database: &Database, plain: &Plain) {
    let mut watch = Watch::new(loaded, "service").await;
    watch.until_agreed(what, database, plain).await;
}

fn all_said(yaml: &str, words: &[&str]) {
    for word in words {
        assert!(yaml.contains(word), "`{word}` is not in:\n{yaml}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_are_appended() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "append_only").await;
    database
        .execute(
            "alter table messages add recipient_address text, add message_body text; drop index attempts_of",
        )
        .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (yaml, loaded) = proposed(folder.path(), &database.url, &reader, &["receipts", "alerts"], &[]).await;
    all_said(
        &yaml,
        &[
            "# recognised  notification id: messages.id, its primary key",
            "# recognised  attempt of: attempts.message_id, a foreign key",
            "# GUESS       the attempts are in attempts",
            "# MISSING     an index for the attempts of a notification: create index concurrently on attempts (message_id)",
            "\"try_again\": retryable # GUESS",
            "\"receipts\": webhook/receipts # GUESS",
        ],
    );
    assert!(!yaml.contains("says nothing to us"), "{yaml}");
    let plain = Plain {
        units: "select 'webhook/' || m.route as route,
                       coalesce((select case a.result when 'accepted' then 'delivered' when 'bad_address' then 'rejected_recipient'
                                        when 'refused' then 'rejected_service' else 'suppressed' end
                                   from attempts a
                                  where a.message_id = m.id and a.result in ('accepted', 'bad_address', 'refused', 'opted_out')
                                  order by a.started_at desc, a.id desc limit 1),
                                (select case a.result when 'try_again' then 'retrying' else 'unknown' end
                                   from attempts a where a.message_id = m.id order by a.started_at desc, a.id desc limit 1),
                                'unattempted') as stands,
                       (extract(epoch from greatest(m.accepted_at, m.send_after)) * 1000000)::bigint as due
                  from messages m where not m.is_canary",
        attempts: Some(
            "select 'webhook/' || m.route as route,
                    case a.result when 'accepted' then 'delivered' when 'try_again' then 'retryable' when 'timed_out' then 'unknown'
                         when 'opted_out' then 'suppressed' else 'permanent_rejection' end as outcome,
                    (extract(epoch from a.started_at) * 1000000)::bigint as at
               from attempts a join messages m on m.id = a.message_id where not m.is_canary",
        ),
    };
    counts_right("what was proposed", &loaded, &database, &plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_row_with_codes_and_an_archive() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "mutable_row").await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (yaml, _) = proposed(folder.path(), &database.url, &reader, &["receipts", "alerts"], &[]).await;
    all_said(
        &yaml,
        &[
            "# GUESS       idempotency key: notices.token, a unique text",
            "# GUESS       notices.created_at has no zone, and is read as UTC",
            "# GUESS       archive: notices_archive",
            "# MISSING     canary mark",
            "# MISSING     the meaning of some statuses",
            "\"3\": unknown # GUESS: it says nothing to us",
        ],
    );
    let means =
        "null=pending 1=unknown 2=retryable 3=delivered 4=rejected_recipient 5=rejected_service 6=suppressed";
    let means: Vec<&str> = means.split(' ').flat_map(|pair| ["--means", pair]).collect();
    let (yaml, loaded) =
        proposed(folder.path(), &database.url, &reader, &["receipts", "alerts"], &means).await;
    assert!(!yaml.contains("says nothing to us"), "{yaml}");
    let plain = Plain {
        units: "select 'webhook/' || kind || 's' as route,
                       case coalesce(state, 0) when 0 then 'unattempted' when 1 then 'unknown' when 2 then 'retrying' when 3 then 'delivered'
                            when 4 then 'rejected_recipient' when 5 then 'rejected_service' else 'suppressed' end as stands,
                       (extract(epoch from greatest(created_at, send_on)) * 1000000)::bigint as due
                  from (select * from notices union all select * from notices_archive) as n",
        attempts: None,
    };
    counts_right("what was proposed", &loaded, &database, &plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decimal_times_and_a_table_of_codes() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "decimal_epochs").await;
    database
        .execute(
            "create table codes (code smallint primary key, name text not null);
             insert into codes values (0, 'delivered'), (1, 'will run again'), (2, 'dead address'), (3, 'given up'), (4, 'kept back'),
                                      (9, 'nobody knows')",
        )
        .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = ["--notifications", "jobs", "--attempts", "runs", "--status", "codes"];
    let (yaml, loaded) =
        proposed(folder.path(), &database.url, &reader, &["receipts", "alerts"], &more).await;
    all_said(
        &yaml,
        &[
            "# recognised  jobs.created has seconds since 1970",
            "# GUESS       attempts are read in the order in which they end, by runs.ended",
            "\"4\": suppressed # GUESS: it is called kept back",
            "\"9\": unknown # GUESS: it says nothing to us",
            "# \"probe\": channel/name # MISSING",
        ],
    );
    let plain = Plain {
        units: "select 'webhook/' || j.queue as route,
                       coalesce((select case r.code when 0 then 'delivered' when 2 then 'rejected_recipient'
                                        when 3 then 'rejected_service' else 'suppressed' end
                                   from runs r where r.job = j.id and r.code in (0, 2, 3, 4) order by r.begun desc limit 1),
                                (select case r.code when 1 then 'retrying' else 'unknown' end
                                   from runs r where r.job = j.id and r.code is not null order by r.begun desc limit 1),
                                'unattempted') as stands,
                       (greatest(j.created, j.run_at) * 1000000)::bigint as due
                  from jobs j where j.queue <> 'probe'",
        attempts: Some(
            "select 'webhook/' || j.queue as route,
                    case r.code when 0 then 'delivered' when 1 then 'retryable' when 4 then 'suppressed' when 9 then 'unknown'
                         else 'permanent_rejection' end as outcome,
                    (r.begun * 1000000)::bigint as at
               from runs r join jobs j on j.id = r.job where r.code is not null and j.queue <> 'probe'",
        ),
    };
    counts_right("what was proposed", &loaded, &database, &plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destinations_between_events_and_tries() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "fan_out").await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = ["--notifications", "events"];
    let (yaml, loaded) =
        proposed(folder.path(), &database.url, &reader, &["payments", "transfers"], &more).await;
    all_said(
        &yaml,
        &[
            "# recognised  fan-out: a row of deliveries is one destination (endpoint) of a row of events (event_id)",
            "deliveries.deleted_at marks deleted rows, and is left out",
            "next_attempt: next_attempt",
            "\"again\": retryable # GUESS: made by the queries",
        ],
    );
    let plain = Plain {
        units: "select 'webhook/' || e.topic || 's' as route,
                       coalesce((select case when t.succeeded then 'delivered' else 'rejected_service' end
                                   from tries t where t.delivery_id = d.id and (t.succeeded or t.next_try_at is null)
                                  order by t.created_at desc, t.id desc limit 1),
                                (select 'retrying' from tries t where t.delivery_id = d.id limit 1), 'unattempted') as stands,
                       (extract(epoch from d.created_at) * 1000000)::bigint as due
                  from deliveries d join events e on e.id = d.event_id where not e.is_probe",
        attempts: Some(
            "select 'webhook/' || e.topic || 's' as route,
                    case when t.succeeded then 'delivered' when t.next_try_at is not null then 'retryable' else 'permanent_rejection' end as outcome,
                    (extract(epoch from t.created_at) * 1000000)::bigint as at
               from tries t join deliveries d on d.id = t.delivery_id join events e on e.id = d.event_id where not e.is_probe",
        ),
    };
    counts_right("what was proposed", &loaded, &database, &plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_are_told_by_nulls_in_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("shape.db");
    let database = Database::file(&path, "null_states").await;
    let path = path.to_str().expect("a path that is text");
    let url = format!("sqlite:{path}");
    let (yaml, loaded) = proposed(folder.path(), &url, path, &["receipts", "alerts"], &[]).await;
    all_said(
        &yaml,
        &[
            "# GUESS       attempt status: told by what is NULL in sendings: sent by sent_at, failed by failed_at, a dead address by is_dead_address",
            "# recognised  notices.created_at has ISO 8601 with an offset",
        ],
    );
    let plain = Plain {
        units: "select 'webhook/' || n.kind || 's' as route,
                       case when exists (select 1 from sendings s where s.notice_id = n.id and s.sent_at is not null) then 'delivered'
                            when exists (select 1 from sendings s where s.notice_id = n.id and s.failed_at is not null
                                                                    and s.next_attempt_at is null and s.is_dead_address)
                            then 'rejected_recipient'
                            when exists (select 1 from sendings s where s.notice_id = n.id and s.failed_at is not null
                                                                    and s.next_attempt_at is null)
                            then 'rejected_service'
                            when exists (select 1 from sendings s where s.notice_id = n.id and s.failed_at is not null) then 'retrying'
                            else 'unattempted' end as stands,
                       cast(round((julianday(n.created_at) - 2440587.5) * 86400000) as integer) * 1000 as due
                  from notices n where not n.is_probe",
        attempts: Some(
            "select 'webhook/' || n.kind || 's' as route,
                    case when s.sent_at is not null then 'delivered' when s.next_attempt_at is not null then 'retryable'
                         else 'permanent_rejection' end as outcome,
                    cast(round((julianday(s.created_at) - 2440587.5) * 86400000) as integer) * 1000 as at
               from sendings s join notices n on n.id = s.notice_id where s.ended_at is not null and not n.is_probe",
        ),
    };
    counts_right("what was proposed", &loaded, &database, &plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mariadb_schema_is_proposed_in_its_own_sql() {
    let server = Mariadb::start();
    let url = server.fresh_database().await;
    let name = url.rsplit('/').next().expect("a name").to_owned();
    server
        .execute(
            &name,
            "create table notifications (id char(36) character set ascii primary key, idempotency_key varchar(64) unique, route varchar(40) not null,
                 is_canary boolean not null default false, recipient_address text, message_body text,
                 accepted_at timestamp(6) not null default current_timestamp(6), settled_at datetime(6), index stream (accepted_at, id));
             create table delivery_attempts (id bigint unsigned auto_increment primary key, notification_id char(36) character set ascii not null,
                 outcome enum('delivered', 'retryable', 'bounced', 'provider_refused', 'suppressed') not null, started_at datetime(6) not null,
                 index of_one (notification_id), index stream (started_at, id));
             insert into notifications (id, idempotency_key, route) values ('a', 'k', 'receipts'), ('b', 'l', 'receipts');
             insert into delivery_attempts (notification_id, outcome, started_at) values ('a', 'delivered', utc_timestamp(6))",
        )
        .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (yaml, loaded) = proposed(folder.path(), &url, &url, &["receipts"], &[]).await;
    all_said(
        &yaml,
        &[
            "in (:ids)",
            "accepted_at >= :after_ts and",
            "\"provider_refused\": rejected_service",
            "time: naive_utc",
        ],
    );
    let mut watch = Watch::new(&loaded, "service").await;
    assert_eq!(watch.try_pass().await.expect("a pass").rows, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_told_is_asked_for_and_nothing_is_made_up() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let database = Database { url: url.clone() };
    let asked = |more: &[&str]| run(&[&["ledger", "init", "--database", &url], more].concat(), &[]);
    for (sql, more, says) in [
        (
            "create table people (id uuid primary key)",
            &[][..],
            "name it by --notifications. There are: people",
        ),
        (
            "create table notes (id uuid primary key, what text)",
            &["--notifications", "notes"],
            "it has: id, what",
        ),
        (
            "create table mails (id uuid primary key, created_at timestamptz)",
            &[],
            "nothing says where a notification stands",
        ),
        (
            "create table messages (id uuid primary key, created_at timestamptz)",
            &[],
            "several tables look like ones of notifications",
        ),
        ("select 1", &["--notifications", "mailz"], "--notifications names `mailz`"),
    ] {
        database.execute(sql).await;
        let ran = asked(more);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
    }
    // Without a row there are no words, and what stands in their place says so.
    database.execute("create table app_messages (id uuid primary key, created_at timestamptz not null, status text not null)").await;
    let empty = asked(&["--notifications", "app_messages"]).ended(0);
    all_said(&empty, &["there are no rows to see words in", "\"*\": webhook/receipts # GUESS"]);
    assert_eq!(run(&["ledger", "init", "--database", "x"], &[]).code, 2);
    assert_eq!(run(&["ledger", "init", "--database", "postgres://r@127.0.0.1:9/x"], &[]).code, 75);
}
