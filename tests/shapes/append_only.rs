//! Attempts that are appended after the call, with the time of its beginning.

use super::{
    bed::{Database, load, run},
    plain::Plain,
    postgres::Postgres,
    watch::Watch,
};

const PLAIN: Plain = Plain {
    units: "select 'webhook/' || m.route as route,
                   coalesce((select case a.result when 'accepted' then 'delivered' when 'bad_address' then 'rejected_recipient'
                                    when 'refused' then 'rejected_service' else 'suppressed' end
                               from attempts a
                              where a.message_id = m.id and a.result in ('accepted', 'bad_address', 'refused', 'opted_out')
                              order by a.started_at desc, a.id desc limit 1),
                            (select case a.result when 'try_again' then 'retrying' else 'unknown' end
                               from attempts a where a.message_id = m.id order by a.started_at desc, a.id desc limit 1),
                            'unattempted') as stands,
                   (extract(epoch from case when m.send_after > m.accepted_at then m.send_after else m.accepted_at end)
                    * 1000000)::bigint as due
              from messages m where not m.is_canary",
    attempts: Some(
        "select 'webhook/' || m.route as route,
                case a.result when 'accepted' then 'delivered' when 'try_again' then 'retryable' when 'timed_out' then 'unknown'
                     when 'opted_out' then 'suppressed' else 'permanent_rejection' end as outcome,
                (extract(epoch from a.started_at) * 1000000)::bigint as at
           from attempts a join messages m on m.id = a.message_id where not m.is_canary",
    ),
};

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_are_appended_after_the_call() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "append_only").await;
    let loaded = load("append_only", &[("LEDGER_URL", &reader)]).await;
    let mut watch = Watch::new(&loaded, "service").await;
    watch.until_agreed("the history", &database, &PLAIN).await;
    watch.restart();
    watch.until_agreed("the history after a restart", &database, &PLAIN).await;

    // Calls are under way that began in this order; the first is the last to become visible.
    let call = |message: &str, result: &str| {
        format!(
            "begin; insert into messages (id, route, accepted_at) values (md5('{message}')::uuid, 'receipts', clock_timestamp());
             insert into attempts (message_id, result, started_at) values (md5('{message}')::uuid, '{result}', clock_timestamp());"
        )
    };
    let (mut slow, mut quick) = (database.connect().await, database.connect().await);
    run(&mut slow, &call("slow", "try_again")).await;
    run(&mut quick, &call("quick", "accepted")).await;
    run(&mut quick, "commit").await;
    watch.until_agreed("the quick call", &database, &PLAIN).await;
    run(&mut slow, "commit").await;
    watch.until_agreed("the slow call", &database, &PLAIN).await;

    // A retry of what is pending for days; a bounce after a delivery of yesterday, and a delivery after a rejection.
    database
        .execute(
            "insert into attempts (message_id, result, started_at)
             select id, result, clock_timestamp() from (
               (select m.id, 'accepted' as result from messages m join attempts a on a.message_id = m.id and a.result = 'timed_out'
                 where m.accepted_at < now() - interval '2 days'
                   and not exists (select from attempts b where b.message_id = m.id and b.result = 'accepted') limit 3)
               union all
               (select m.id, 'bad_address' from messages m join attempts a on a.message_id = m.id and a.result = 'accepted'
                 where m.accepted_at < now() - interval '1 day' limit 3)
               union all
               (select m.id, 'accepted' from messages m join attempts a on a.message_id = m.id and a.result = 'refused' limit 2)) as late",
        )
        .await;
    watch.until_agreed("what came late", &database, &PLAIN).await;
    watch.restart();
    watch.until_agreed("all of it after a restart", &database, &PLAIN).await;
}
