//! A service's ledger with fan-out: messages, their destinations, and the calls to a provider; and a monitor that follows it.
use super::world::{Place, Shape, World, until};
use chrono::{DateTime, Utc};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use std::fs;

/// A ledger, and where its monitor is configured.
pub struct Service {
    pub place: Place,
    world: World,
    url: String,
}

impl Service {
    /// An empty ledger, in a file where there is no URL, whose rows may come this late.
    pub async fn new(ledger_url: Option<String>, overlap: &str) -> Self {
        sqlx::any::install_default_drivers();
        let shape = Shape { schedule: "{ every: 1h }".into(), ..Shape::default() };
        let world = World::new(shape).await;
        let place = world.configure("monitor");
        let file = world.folder.path().join("books.db");
        let url = ledger_url.clone().unwrap_or_else(|| format!("sqlite:{}?mode=rwc", file.display()));
        let database = match &ledger_url {
            Some(url) => format!("postgres: {{ url: {url} }}"),
            None => format!("sqlite: {{ path: {} }}", file.display()),
        };
        let text = fs::read_to_string(&place.config).expect("it was written");
        let (head, rest) = text.split_once("ledgers:\n").expect("there are ledgers");
        let (_, routes) = rest.split_once("\nroutes:\n").expect("there are routes");
        let ledger = ledger(&database, overlap, ledger_url.is_some());
        fs::write(&place.config, format!("{head}ledgers:\n{ledger}routes:\n{routes}"))
            .expect("it can be written");
        let service = Self { place, world, url };
        let time = if ledger_url.is_some() { "timestamptz" } else { "text" };
        for sql in [
            format!(
                "create table message (id bigint primary key, route text not null, made_at {time} not null)"
            ),
            "create table target (n bigint primary key, message_id bigint not null, dest text not null)"
                .into(),
            format!(
                "create table call (id bigint primary key, message_id bigint not null, dest text not null, result text not null, \
                 started_at {time} not null)"
            ),
        ] {
            service.execute(&sql).await;
        }
        service
    }

    pub async fn execute(&self, sql: &str) {
        let mut connection = AnyConnection::connect(&self.url).await.expect("the ledger is there");
        let result = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
        result.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// A message that was made then, to these destinations, each with the results of its calls.
    pub async fn message(&self, id: i64, route: &str, at: DateTime<Utc>, to: &[(&str, &[&str])]) {
        let at = at.format("%Y-%m-%dT%H:%M:%SZ");
        let mut sql = format!("insert into message values ({id}, '{route}', '{at}');");
        for (n, (dest, results)) in (0..).zip(to) {
            sql += &format!("insert into target values ({}, {id}, '{dest}');", id * 10 + n);
            for (call, result) in (0..).zip(*results) {
                sql += &format!(
                    "insert into call values ({}, {id}, '{dest}', '{result}', '{at}');",
                    id * 100 + n * 10 + call
                );
            }
        }
        self.execute(&sql).await;
    }

    /// Deletes a message with all that belongs to it.
    pub async fn forget(&self, id: i64) {
        self.execute(&format!(
            "delete from call where message_id = {id}; delete from target where message_id = {id}; delete from message where id = {id}"
        ))
        .await;
    }

    /// Takes the ledger's file away.
    pub fn remove(&self) {
        fs::remove_file(self.world.folder.path().join("books.db")).expect("the file is there");
    }

    /// Waits until all is read, and written down.
    pub fn until_followed(&self) {
        until("the ledger to be followed", 40, || {
            let labels = [("ledger", "attempts"), ("mode", "following")];
            let mode = self.place.value("delivery_ledger_follower", &labels);
            if mode == Some(1.0) { Ok(()) } else { Err(self.place.log()) }
        });
    }

    /// Waits until so many are pending.
    pub fn until_pending(&self, count: u32) {
        until(&format!("{count} to be pending"), 40, || {
            let page = self.place.scrape().ok_or("no page")?;
            let state = |state| {
                let labels = [("route", "webhook/receipts"), ("state", state)];
                page.value("delivery_ledger_pending", &labels).unwrap_or(f64::NAN)
            };
            let seen: f64 = ["unattempted", "retrying", "unknown"].map(state).iter().sum();
            if seen.total_cmp(&f64::from(count)).is_eq() {
                Ok(())
            } else {
                Err(format!("{seen}; log:\n{}", self.place.log()))
            }
        });
    }

    /// Waits until so many are in the sample of the audit.
    pub fn until_sampled(&self, count: i64) {
        until(&format!("{count} to be sampled"), 40, || {
            let sampled = self.of_store("select count(*), 0 from audit_sample");
            let (sampled, _) =
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(sampled));
            if sampled == count { Ok(()) } else { Err(format!("{sampled}; log:\n{}", self.place.log())) }
        });
    }

    async fn of_store(&self, sql: &'static str) -> (i64, i64) {
        let store = format!("sqlite:{}", self.world.folder.path().join("monitor.db").display());
        let mut connection = AnyConnection::connect(&store).await.expect("the store is there");
        let row = sqlx::query(sql).fetch_one(&mut connection).await.expect("it counts");
        (row.get(0), row.get(1))
    }

    /// When the follower's state was last written, and who leads until when.
    pub async fn kept(&self) -> (i64, i64) {
        self.of_store("select saved_at, lease_until from follower").await
    }

    /// How many units are written down.
    pub async fn kept_units(&self) -> i64 {
        self.of_store("select count(*), 0 from follower_unit").await.0
    }
}

fn ledger(database: &str, overlap: &str, is_postgres: bool) -> String {
    let column =
        |name: &str| if is_postgres { name.into() } else { format!("{{ name: {name}, time: iso }}") };
    let ids = if is_postgres { "= any(:ids::bigint[])" } else { "in (select value from json_each(:ids))" };
    format!(
        r#"  attempts:
    database: {{ {database} }}
    overlap: {overlap}
    refresh_every: 1s
    lookup:
      sql: |
        select m.id, m.route, m.made_at, t.dest, c.id as call, c.result, c.started_at
        from message m join target t on t.message_id = m.id left join call c on c.message_id = m.id and c.dest = t.dest
        where m.id {ids} limit :limit
      columns: {{ notification_id: id, route: route, accepted_at: {made_at}, destination: dest, attempt_id: call, attempt_status: result, attempt_at: {started_at} }}
    notifications:
      sql: |
        select m.id, m.route, m.made_at, t.dest, t.n from message m join target t on t.message_id = m.id
        where (m.made_at, t.n) > (:after_ts, :after_id) order by m.made_at, t.n limit :limit
      columns: {{ notification_id: id, route: route, accepted_at: {made_at}, destination: dest }}
      cursor: {{ at: {made_at}, id: n }}
      routes: {{ receipts: webhook/receipts }}
    attempts:
      sql: |
        select id, message_id, dest, result, started_at from call
        where (started_at, id) > (:after_ts, :after_id) order by started_at, id limit :limit
      columns: {{ attempt_id: id, notification_id: message_id, destination: dest, status: result, at: {started_at} }}
      cursor: {{ at: {started_at}, id: id }}
    partition:
      sql: |
        select m.route, (select c.result from call c where c.message_id = m.id and c.dest = t.dest order by c.id desc limit 1) as result,
               count(*) as n
        from message m join target t on t.message_id = m.id
        where m.made_at >= :from_ts and m.made_at < :until_ts group by 1, 2
      columns: {{ route: route, status: result, count: n }}
      routes: {{ receipts: webhook/receipts }}
    statuses: {{ ok: delivered, again: retryable, dead: rejected_recipient, broken: rejected_service }}
"#,
        made_at = column("made_at"),
        started_at = column("started_at"),
    )
}
