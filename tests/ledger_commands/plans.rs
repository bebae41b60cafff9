//! What `ledger check` says of plans that a look at the result does not give away.

use super::{
    bed::Database,
    check::{found, json},
    postgres::Postgres,
    run::{configuration, run},
};
use serde_json::Value;

/// A followed ledger whose stream is in the order of the id alone.
const LEDGER: &str = "ledgers:
  service:
    database: { postgres: { url: '${LEDGER_URL}' } }
    lookup:
      sql: select id, number, accepted_at, state from notes where id = any(:ids::uuid[]) limit :limit
      columns: { notification_id: id, accepted_at: accepted_at, status: state }
    pending:
      sql: select accepted_at, state from notes where state = 'waiting' order by accepted_at limit :limit
      columns: { accepted_at: accepted_at, status: state }
      routes: { '*': webhook/receipts }
    notifications:
      sql: select id, number, accepted_at, state from notes where number > :after_id order by number limit :limit
      columns: { notification_id: id, accepted_at: accepted_at, status: state }
      cursor: { id: number }
      routes: { '*': webhook/receipts }
    statuses: { sent: delivered, waiting: pending }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_index_and_a_cursor_by_id_alone_are_told() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let database = Database { url: url.clone() };
    let reader = server.role("reader", &url).await;
    database
        .execute(
            "create table notes (id uuid primary key, number bigint not null, accepted_at timestamptz not null, state text not null);
             create index notes_at on notes (accepted_at);
             insert into notes select md5(g::text)::uuid, g, now() - g * interval '1 second', 'sent' from generate_series(1, 30000) as g;
             grant select on notes to reader; alter role reader set enable_seqscan = off; alter role reader set enable_bitmapscan = off; analyze",
        )
        .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = configuration(folder.path(), &["receipts"], LEDGER);
    let file = file.to_str().expect("a path that is text");
    let check =
        || json(&run(&["ledger", "check", "--json", "--config", file], &[("LEDGER_URL", &reader)]).ended(0));
    let said = |answer: &Value, name: &str, status: &str, words: &[&str]| {
        let finding = found(answer, name);
        assert_eq!(finding["status"], status, "{name}: {answer:#}");
        let text = format!("{} {}", finding["detail"], finding["hint"]);
        words.iter().for_each(|word| assert!(text.contains(word), "`{word}` is not in: {text}"));
    };
    let answer = check();
    let whole = [
        "it reads all of notes (about 30000 rows), each entry of the index `notes_at`",
        "state = …",
        "leading columns",
    ];
    said(&answer, "pending plan", "warn", &whole);
    said(
        &answer,
        "notifications plan",
        "warn",
        &["it reads all of notes", "number > ", "an index on just the cursor's columns"],
    );
    said(&answer, "cost", "ok", &["isn't measured: a cursor by id alone, as in `notifications`"]);

    database.execute("create index concurrently on notes (number)").await;
    database.execute("create index concurrently on notes (accepted_at) where state = 'waiting'").await;
    let answer = check();
    said(&answer, "pending plan", "ok", &["by indexes"]);
    said(&answer, "notifications plan", "ok", &["by indexes"]);
}
