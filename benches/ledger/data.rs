//! The service's tables: append-only, no column of a state, ids that are UUIDs of no order.

use anyhow::Result;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// How many notifications are pending, whatever the size.
const PENDING: u64 = 20_000;

/// What the tables hold.
pub struct Filled {
    pub notifications: i64,
    pub attempts: i64,
    pub pending: u64,
}

/// Fills the tables: 30 days of notifications up to two minutes ago. Three in ten need a second attempt half a minute after the first. Of the
/// pending, spread over all 30 days, half have no attempt, a quarter one that will be repeated, and a quarter one of unknown outcome.
///
/// `settled` is a copy for the baseline: the same notifications as a service would have them that writes a column when one is settled.
pub async fn fill(url: &str, notifications: u64) -> Result<Filled> {
    let each = notifications / PENDING;
    let mut connection = PgConnection::connect(url).await?;
    // One text is one transaction: what it makes and fills need not go through the log.
    let text = format!(
        "create table notifications (id uuid not null, accepted_at timestamptz not null, route text not null);
         create table attempts (id uuid not null, notification_id uuid not null, started_at timestamptz not null,
                                outcome text not null);
         create table settled (id uuid not null, accepted_at timestamptz not null, settled_at timestamptz);
         create function made_at(i bigint) returns timestamptz language sql stable as $$
             select now() - interval '2 minutes' - interval '30 days' + i * (interval '30 days' / {notifications}::float8) $$;
         insert into notifications
             select md5('n' || i)::uuid, made_at(i), (array['receipts', 'alerts', 'notices'])[1 + i % 3]
               from generate_series(1, {notifications}::bigint) i;
         insert into attempts
             select md5(k || 'a' || i)::uuid, md5('n' || i)::uuid, made_at(i) + (30 * k - 29) * interval '1 second',
                    case when i % {each} = 0 then (array['retryable', 'unknown'])[1 + i / {each} / 2 % 2]
                         when i % 10 < 3 and k = 1 then 'retryable'
                         when i / 10 % 100 < 3 then (array['bounced', 'provider_refused', 'suppressed'])[1 + i / 10 % 100]
                         else 'delivered' end
               from generate_series(1, {notifications}::bigint) i, generate_series(1, 2) k
              where case when i % {each} = 0 then k = 1 and i / {each} % 2 = 0 else k = 1 or i % 10 < 3 end;
         insert into settled
             select md5('n' || i)::uuid, made_at(i), case when i % {each} <> 0 then made_at(i) + interval '1 second' end
               from generate_series(1, {notifications}::bigint) i;
         alter table notifications add primary key (id);
         create index notifications_cursor on notifications (accepted_at, id);
         alter table attempts add primary key (id);
         create index attempts_cursor on attempts (started_at, id);
         create index attempts_notification on attempts (notification_id);
         create index settled_pending on settled (accepted_at) where settled_at is null;"
    );
    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connection).await?;
    sqlx::raw_sql("vacuum (analyze)").execute(&mut connection).await?;
    sqlx::raw_sql("checkpoint").execute(&mut connection).await?;
    let row = sqlx::query("select (select count(*) from notifications), (select count(*) from attempts)");
    let row = row.fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(Filled { notifications: row.get(0), attempts: row.get(1), pending: PENDING })
}
