//! One event for several endpoints, with success as a boolean and soft deletes.

use super::{
    bed::{Database, load},
    plain::Plain,
    postgres::Postgres,
    watch::Watch,
};

const PLAIN: Plain = Plain {
    units: "select 'webhook/' || e.topic || 's' as route,
                   case when d.deleted_at < (select coalesce(min(t.created_at), 'infinity') from tries t
                                              where t.delivery_id = d.id and (t.succeeded or t.next_try_at is null))
                        then 'suppressed'
                        else coalesce((select case when t.succeeded then 'delivered' else 'rejected_service' end from tries t
                                        where t.delivery_id = d.id and (t.succeeded or t.next_try_at is null)
                                        order by t.created_at desc limit 1),
                                      (select 'retrying' from tries t where t.delivery_id = d.id limit 1),
                                      'unattempted') end as stands,
                   (extract(epoch from d.created_at) * 1000000)::bigint as due
              from deliveries d join events e on e.id = d.event_id where not e.is_probe",
    attempts: Some(
        "select 'webhook/' || e.topic || 's' as route,
                case when t.succeeded then 'delivered' when t.next_try_at is null then 'permanent_rejection' else 'retryable' end as outcome,
                (extract(epoch from t.created_at) * 1000000)::bigint as at
           from tries t join deliveries d on d.id = t.delivery_id join events e on e.id = d.event_id where not e.is_probe",
    ),
};

/// Deliveries that are open: not deleted, and with no try that settles them.
const OPEN: &str = "d.deleted_at is null and not exists (select from tries t where t.delivery_id = d.id
                                                             and (t.succeeded or t.next_try_at is null))";

#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_several_endpoints_with_soft_deletes() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "fan_out").await;
    let loaded = load("fan_out", &[("LEDGER_URL", &reader)]).await;
    let mut watch = Watch::new(&loaded, "service").await;
    watch.until_agreed("the history", &database, &PLAIN).await;
    watch.restart();
    watch.until_agreed("the history after a restart", &database, &PLAIN).await;

    database
        .execute(
            "insert into events (id, topic, created_at) values ('evt_new', 'payment', clock_timestamp());
             insert into deliveries (event_id, endpoint, created_at)
               select 'evt_new', 'end_' || e, clock_timestamp() from generate_series(1, 3) as e;
             insert into tries (id, delivery_id, number, succeeded, next_try_at, created_at)
               select 'try_new_' || endpoint, id, 0, endpoint = 'end_1', case when endpoint = 'end_2' then now() + interval '1 hour' end,
                      clock_timestamp()
                 from deliveries where event_id = 'evt_new'",
        )
        .await;
    watch.until_agreed("a new event", &database, &PLAIN).await;

    // An endpoint is removed: its open deliveries go, its settled ones keep what they came to. A call that was under way still ends.
    database
        .execute(&format!(
            "create temporary table removed as select d.id from deliveries d where d.endpoint = 'end_1' and {OPEN};
             update deliveries set deleted_at = clock_timestamp() where endpoint = 'end_1' and deleted_at is null;
             insert into tries (id, delivery_id, number, succeeded, created_at)
               select 'try_under_way_' || id, id, 9, true, clock_timestamp() from removed order by id limit 2"
        ))
        .await;
    watch.until_agreed("a removed endpoint", &database, &PLAIN).await;

    // By hand: once more what was delivered, and what had failed for good. And a last try of what was still open.
    database
        .execute(&format!(
            "insert into tries (id, delivery_id, number, succeeded, created_at)
               select 'try_hand_' || t.id, t.delivery_id, -1, true, clock_timestamp()
                 from (select distinct on (delivery_id, succeeded) * from tries
                        where (succeeded or next_try_at is null) and created_at < now() - interval '1 day') as t
                where t.delivery_id % 4 = 0;
             insert into tries (id, delivery_id, number, succeeded, created_at)
               select 'try_last_' || d.id, d.id, 5, d.id % 2 = 0, clock_timestamp() from deliveries d where {OPEN} and d.id % 3 > 0"
        ))
        .await;
    watch.until_agreed("what was sent by hand", &database, &PLAIN).await;
    watch.restart();
    watch.until_agreed("all of it after a restart", &database, &PLAIN).await;
}
