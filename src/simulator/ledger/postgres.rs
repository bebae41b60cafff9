//! The ledger in a PostgreSQL database. Readers reach it through a proxy that can be cut; the service does not.

use super::{
    Attempt, Ledger, LedgerCounts, LedgerError, NewNotification, Next, ReaderAddress, Work, Written, to,
};
use crate::simulator::{gate::Gate, options::SimulatorOptions, proxy::TcpProxy};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::{
    Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// Connections of the service itself.
const MOST_CONNECTIONS: u32 = 8;

type WorkRow = (Uuid, Option<String>, Option<String>, String, i32);

/// A ledger in a PostgreSQL database.
pub struct PostgresLedger {
    pool: PgPool,
    proxy: Gate,
    reader_url: String,
}

impl PostgresLedger {
    /// Connects, and makes the tables if they aren't there.
    pub async fn open(url: &str, options: &SimulatorOptions) -> Result<Self, LedgerError> {
        let mut reader_url = reqwest::Url::parse(url).map_err(|error| LedgerError::Url(error.to_string()))?;
        let connect: PgConnectOptions = url.parse().map_err(to("read its URL"))?;
        if reader_url.host_str().is_none_or(str::is_empty) || connect.get_socket().is_some() {
            return Err(LedgerError::Url("it names no host".into()));
        }
        let upstream = (connect.get_host().to_owned(), connect.get_port());
        let connect = connect.application_name("notification-service");
        // A pool only says that it timed out; a bare connection says why the database can't be reached.
        let bare = PgConnection::connect_with(&connect).await.map_err(to("connect to its database"))?;
        bare.close().await.map_err(to("connect to its database"))?;
        let pool = PgPoolOptions::new()
            .max_connections(MOST_CONNECTIONS)
            .acquire_timeout(Duration::from_secs(5))
            .connect_lazy_with(connect);
        sqlx::raw_sql(include_str!("postgres.sql")).execute(&pool).await.map_err(to("make its tables"))?;
        let handler = Arc::new(TcpProxy { upstream });
        let proxy = Gate::open_at("ledger's", options.ledger_proxy, 64, handler).await?;
        let unfit = |()| LedgerError::Url("it can't take another host or port".into());
        reader_url.set_ip_host(proxy.address().ip()).map_err(unfit)?;
        reader_url.set_port(Some(proxy.address().port())).map_err(unfit)?;
        Ok(Self { pool, proxy, reader_url: reader_url.into() })
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn accept(&self, new: &NewNotification) -> Result<Written, LedgerError> {
        let failed = to("write a notification");
        let written = sqlx::query(
            "with written as (
                 insert into notifications (notification_id, idempotency_key, request_digest, route, channel, template,
                     is_canary, accepted_at, not_before, traceparent, policy_version, next_attempt_at)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (idempotency_key) do nothing
                 returning notification_id)
             insert into messages (notification_id, body) select notification_id, $13 from written",
        )
        .bind(new.notification_id)
        .bind(&new.idempotency_key)
        .bind(&new.digest)
        .bind(&new.message.route)
        .bind(new.message.channel.word())
        .bind(&new.message.template)
        .bind(new.message.is_canary())
        .bind(new.accepted_at)
        .bind(new.not_before)
        .bind(&new.traceparent)
        .bind(&new.policy_version)
        .bind(new.first_attempt_at)
        .bind(serde_json::to_string(&new.message)?)
        .execute(&self.pool)
        .await
        .map_err(&failed)?;
        if written.rows_affected() == 1 {
            return Ok(Written::Created(new.notification_id));
        }
        let (found, digest): (Uuid, String) = sqlx::query_as(
            "select notification_id, request_digest from notifications where idempotency_key = $1",
        )
        .bind(&new.idempotency_key)
        .fetch_one(&self.pool)
        .await
        .map_err(&failed)?;
        Ok(if digest == new.digest { Written::Replayed(found) } else { Written::Conflict })
    }

    async fn take_due(
        &self,
        now: DateTime<Utc>,
        but_routes: &[String],
        limit: usize,
    ) -> Result<Vec<Work>, LedgerError> {
        let rows: Vec<WorkRow> = sqlx::query_as(
            "with due as (
                 select notification_id from notifications
                 where settled_at is null and not leased and next_attempt_at <= $1 and route <> all($2)
                 order by next_attempt_at limit $3 for update skip locked)
             update notifications n set leased = true from due, messages m
             where n.notification_id = due.notification_id and m.notification_id = due.notification_id
             returning n.notification_id, n.idempotency_key, n.traceparent, m.body,
                 (select coalesce(max(a.attempt_number), 0) from delivery_attempts a
                  where a.notification_id = n.notification_id)",
        )
        .bind(now)
        .bind(but_routes)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&self.pool)
        .await
        .map_err(to("take up what is due"))?;
        rows.into_iter()
            .map(|(notification_id, idempotency_key, traceparent, body, made)| {
                Ok(Work {
                    notification_id,
                    idempotency_key,
                    traceparent,
                    message: serde_json::from_str(&body)?,
                    attempts_made: u32::try_from(made).unwrap_or(u32::MAX),
                })
            })
            .collect()
    }

    async fn record(&self, attempt: &Attempt, next: Next) -> Result<(), LedgerError> {
        let (settled_at, next_attempt_at) = match next {
            Next::Settled => (Some(attempt.ended_at), None),
            Next::Retry(at) => (None, Some(at)),
            Next::Parked => (None, None),
        };
        // A repetition after a commit whose answer was lost must not fail on its own row.
        sqlx::query(
            "with appended as (
                 insert into delivery_attempts (attempt_id, notification_id, attempt_number, outcome, provider_code,
                     started_at, ended_at, policy_version)
                 values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (attempt_id) do nothing)
             update notifications set settled_at = $9, next_attempt_at = $10, leased = false
             where notification_id = $2",
        )
        .bind(attempt.attempt_id)
        .bind(attempt.notification_id)
        .bind(i32::try_from(attempt.attempt_number).unwrap_or(i32::MAX))
        .bind(attempt.outcome.word())
        .bind(&attempt.provider_code)
        .bind(attempt.started_at)
        .bind(attempt.ended_at)
        .bind(&attempt.policy_version)
        .bind(settled_at)
        .bind(next_attempt_at)
        .execute(&self.pool)
        .await
        .map_err(to("append an attempt"))?;
        Ok(())
    }

    async fn release(&self) -> Result<(), LedgerError> {
        sqlx::query("update notifications set leased = false where leased")
            .execute(&self.pool)
            .await
            .map_err(to("release what was taken up"))?;
        Ok(())
    }

    async fn revive(&self, at: DateTime<Utc>) -> Result<(), LedgerError> {
        sqlx::query(
            "update notifications set next_attempt_at = $1
             where settled_at is null and not leased and next_attempt_at is null",
        )
        .bind(at)
        .execute(&self.pool)
        .await
        .map_err(to("revive what is parked"))?;
        Ok(())
    }

    async fn counts(&self) -> Result<LedgerCounts, LedgerError> {
        let (notifications, pending, attempts) = sqlx::query_as(
            "select (select count(*) from notifications),
                 (select count(*) from notifications where settled_at is null),
                 (select count(*) from delivery_attempts)",
        )
        .fetch_one(&self.pool)
        .await
        .map_err(to("count its rows"))?;
        Ok(LedgerCounts { notifications, pending, attempts })
    }

    async fn bar_readers(&self, barred: bool) -> Result<(), LedgerError> {
        if barred {
            self.proxy.close().await;
        } else {
            self.proxy.open().await?;
        }
        Ok(())
    }

    fn reader(&self) -> ReaderAddress {
        ReaderAddress::Postgres(self.reader_url.clone())
    }

    async fn close(&self) {
        self.proxy.close().await;
        self.pool.close().await;
    }
}
