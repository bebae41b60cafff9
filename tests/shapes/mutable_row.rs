//! One row for each notice, changed in place, and moved to an archive.

use super::{
    bed::{Database, load},
    plain::Plain,
    postgres::Postgres,
    watch::Watch,
};

/// `expired` is the test's own: what retention deleted after it was settled, which the monitor has seen and goes on counting.
const PLAIN: Plain = Plain {
    units: "select 'sms/' || kind || 's' as route,
                   case coalesce(state, 0) when 0 then 'unattempted' when 1 then 'unknown' when 2 then 'retrying' when 3 then 'delivered'
                        when 4 then 'rejected_recipient' when 5 then 'rejected_service' else 'suppressed' end as stands,
                   (extract(epoch from case when send_on > created_at then send_on else created_at end) * 1000000)::bigint as due
              from (select * from notices union all select * from notices_archive union all select * from expired) as n
             where account <> 1",
    attempts: None,
};

#[tokio::test(flavor = "multi_thread")]
async fn one_row_that_is_changed_in_place_and_archived() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "mutable_row").await;
    let loaded = load("mutable_row", &[("LEDGER_URL", &reader)]).await;
    database.execute("create table expired (like notices)").await;
    let mut watch = Watch::new(&loaded, "service").await;
    watch.until_agreed("the history", &database, &PLAIN).await;

    database
        .execute(
            "insert into notices (token, account, kind, state) select 'new' || g, 2, 'receipt', case when g % 2 = 0 then 3 end
               from generate_series(1, 6) as g",
        )
        .await;
    watch.until_agreed("new notices", &database, &PLAIN).await;

    // One of the new ones is sent while its row is open; older ones are tried, and the nightly job hears from the carrier.
    database
        .execute(
            "update notices set state = 3 where token = 'new1';
             update notices set state = 2 where state is null and id % 2 = 0;
             update notices set state = case when id % 2 = 0 then 3 else 4 end where state = 1",
        )
        .await;
    watch.until_agreed("the nightly job", &database, &PLAIN).await;

    // Rows move, settled and pending ones, also while nobody watches. Some of the pending ones end in the archive.
    let moved = "with moved as (delete from notices where created_at < (now() at time zone 'utc') - interval '%' returning *)
                 insert into notices_archive select * from moved";
    database.execute(&moved.replace('%', "3 days")).await;
    watch.until_agreed("the move", &database, &PLAIN).await;
    watch.restart();
    database.execute(&moved.replace('%', "1 day")).await;
    database.execute("update notices_archive set state = 5 where state = 2 and id % 3 > 0").await;
    watch.until_agreed("what ended in the archive", &database, &PLAIN).await;

    // Retention: what was settled is counted on, what was pending is gone from the ledger and from the books.
    database
        .execute(
            "with gone as (delete from notices_archive where created_at < (now() at time zone 'utc') - interval '5 days' returning *)
             insert into expired select * from gone where state > 2",
        )
        .await;
    watch.until_followed("retention", &database, &PLAIN).await;
    watch.restart();
    watch.until_followed("retention after a restart", &database, &PLAIN).await;
}
