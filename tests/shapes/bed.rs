//! A database with the schema and data of a shape, and the shape's configuration.

use super::postgres::Postgres;
use delivery_canary::{
    config::{self, Loaded, scalar::Span},
    ledger::{self, check::Level},
};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use std::path::Path;

/// How late a row may become visible in these tests: they have to wait that long.
const OVERLAP: u64 = 15;

/// A page of the streams, smaller than the data.
const PAGE: u32 = 70;

/// A database, written to as its owner does.
#[derive(Clone)]
pub struct Database {
    /// The owner's address.
    pub url: String,
}

impl Database {
    /// A connection of the owner's.
    pub async fn connect(&self) -> AnyConnection {
        sqlx::any::install_default_drivers();
        AnyConnection::connect(&self.url).await.expect("the database takes connections")
    }

    /// Runs statements as the owner.
    pub async fn execute(&self, sql: &str) {
        let mut connection = self.connect().await;
        run(&mut connection, sql).await;
        connection.close().await.expect("the connection closes");
    }

    /// A database of this server with the schema and data of a shape, and the address by which the monitor reads it.
    pub async fn on(server: &Postgres, shape: &str) -> (Self, String) {
        let url = server.fresh_database().await;
        let reader = url.replacen("postgres@", "canary_reader@", 1);
        let database = Self { url };
        database.execute("do $$ begin create role canary_reader login; exception when duplicate_object then null; end $$").await;
        database.execute(&script(shape)).await;
        database.execute("analyze").await;
        (database, reader)
    }

    /// A file with the schema and data of a shape.
    pub async fn file(path: &Path, shape: &str) -> Self {
        let database = Self { url: format!("sqlite:{}?mode=rwc", path.display()) };
        database.execute(&script(shape)).await;
        database
    }
}

/// Runs statements on a connection.
pub async fn run(connection: &mut AnyConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn script(shape: &str) -> String {
    std::fs::read_to_string(format!("config/shapes/{shape}.sql")).expect("the shape has schema and data")
}

/// Loads a shape's configuration with these ledgers, as it stands; nothing about it may be odd.
pub async fn load(shape: &str, addresses: &[(&str, &str)]) -> Loaded {
    let env = |name: &str| match name {
        "TOKEN_SECRET" => Some("0123456789abcdef0123456789abcdef".to_owned()),
        "API_TOKEN" => Some("of-nobody-0123456789".to_owned()),
        _ => addresses.iter().find(|(known, _)| *known == name).map(|(_, address)| (*address).to_owned()),
    };
    let path = format!("config/shapes/{shape}.yaml");
    let mut loaded = config::load(Path::new(&path), &env).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, []);
    for (name, ledger) in &loaded.config.ledgers {
        let adapter = ledger::open(name, ledger).expect("the ledger can be read");
        for finding in adapter.check().await {
            assert_eq!(finding.level, Level::Ok, "{shape}, ledger {name}: {finding:?}");
        }
    }
    for ledger in loaded.config.ledgers.values_mut() {
        ledger.overlap = Span::seconds(OVERLAP);
        ledger.max_rows = PAGE;
    }
    loaded
}
