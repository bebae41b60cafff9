//! `ledger init`: a ledger's configuration, proposed from the tables of its database.

use crate::cli::{
    Outcome, WrongUsage,
    out::tell,
    wiring::{self, Where},
};
use crate::{
    config::{
        ledger::{LedgerDatabase, Meaning, MysqlLedger, PostgresLedger, SqliteLedger},
        scalar::Secret,
    },
    ledger::init::{Asked, InitError, propose},
};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `ledger init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The database: postgres://…, mysql://… or sqlite:FILE. It is only read
    #[arg(long, value_name = "URL", env = "DELIVERY_CANARY_OWNER_URL", hide_env_values = true)]
    database: String,
    /// The schema that the tables are in, where it is not the usual one
    #[arg(long)]
    schema: Option<String>,
    /// The table of the notifications
    #[arg(long, value_name = "TABLE")]
    notifications: Option<String>,
    /// The table of the attempts
    #[arg(long, value_name = "TABLE")]
    attempts: Option<String>,
    /// A table that names the codes of the statuses
    #[arg(long, value_name = "TABLE")]
    status: Option<String>,
    /// What a word of your service's means, such as 3=delivered or null=pending. It can be given again
    #[arg(long, value_name = "WORD=MEANING", value_parser = meaning)]
    means: Vec<(String, Meaning)>,
    /// The ledger's name in the configuration
    #[arg(long, default_value = "service", value_parser = name)]
    name: String,
    /// A configuration whose routes the service's words are held against
    #[arg(long, value_name = "FILE", env = "DELIVERY_CANARY_CONFIG")]
    config: Option<PathBuf>,
}

/// A word and what it means.
fn meaning(text: &str) -> Result<(String, Meaning), String> {
    let how = "write WORD=MEANING with one of delivered, retryable, rejected_recipient, rejected_service, suppressed, pending, unknown";
    let (word, meaning) = text.rsplit_once('=').ok_or(how)?;
    let meaning = serde_json::from_value(meaning.into()).map_err(|_| how)?;
    if word.is_empty() { Err(how.to_owned()) } else { Ok((word.to_owned(), meaning)) }
}

/// A name of a ledger.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let is_name = text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_plain);
    if is_name { Ok(text.to_owned()) } else { Err("write small letters, digits, `_` and `-`".to_owned()) }
}

/// Prints what is proposed.
pub async fn run(args: InitArgs) -> Result<Outcome> {
    wiring::install_tls();
    let routes = match args.config {
        Some(path) => {
            let loaded = wiring::load(&Where { path, location: None })?;
            Some(loaded.config.routes.iter().map(|route| route.full_name().to_string()).collect())
        }
        None => None,
    };
    let asked = Asked {
        name: args.name,
        database: database(&args.database)?,
        schema: args.schema,
        notifications: args.notifications,
        attempts: args.attempts,
        statuses: args.status,
        meanings: args.means.into_iter().collect(),
        routes,
    };
    match propose(&asked).await {
        Ok(proposal) => {
            tell!("{}", proposal.to_yaml());
            Ok(Outcome::Done)
        }
        Err(InitError::Ledger(error)) => Err(error.into()),
        Err(InitError::Unrecognised(text)) => {
            eprintln!("error: {text}");
            Ok(Outcome::Undecided)
        }
    }
}

fn database(url: &str) -> Result<LedgerDatabase> {
    let is_for = |schemes: &[&str]| schemes.iter().any(|scheme| url.starts_with(scheme));
    if is_for(&["postgres://", "postgresql://"]) {
        return Ok(LedgerDatabase::Postgres(PostgresLedger { url: Secret::new(url), max_connections: 1 }));
    }
    if is_for(&["mysql://", "mariadb://"]) {
        return Ok(LedgerDatabase::Mysql(MysqlLedger { url: Secret::new(url), max_connections: 1 }));
    }
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => {
            // As in a URL, where it is written as one.
            let path = path.strip_prefix("//").unwrap_or(path);
            Ok(LedgerDatabase::Sqlite(SqliteLedger { path: path.into() }))
        }
        _ => {
            let how = "`--database` is none that can be read: write postgres://user:password@host/database, mysql://…, or sqlite:FILE";
            Err(WrongUsage(how.to_owned()).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaning_is_one_of_those_of_the_configuration() {
        assert_eq!(meaning("3=delivered"), Ok(("3".to_owned(), Meaning::Delivered)));
        assert_eq!(meaning("a=b=pending"), Ok(("a=b".to_owned(), Meaning::Pending)));
        for wrong in ["3", "3=fine", "=pending"] {
            assert!(meaning(wrong).unwrap_err().contains("rejected_service"), "{wrong}");
        }
    }

    #[test]
    fn a_database_is_told_by_how_its_url_begins() {
        assert!(
            matches!(database("sqlite:/a/b.db"), Ok(LedgerDatabase::Sqlite(file)) if file.path.ends_with("b.db"))
        );
        assert!(matches!(database("mariadb://r@h/d"), Ok(LedgerDatabase::Mysql(_))));
        assert!(database("h/d").is_err() && database("sqlite:").is_err());
    }
}
