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
    ledger::init::{Asked, BY_HAND, GaveUp, InitError, Role, propose},
};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

const DEFAULT_NAME: &str = "service";

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
    /// What a column is for, where its name doesn't tell, such as accepted_at=angelegtAm. It can be given again
    #[arg(long, value_name = "ROLE=COLUMN", value_parser = column)]
    column: Vec<(Role, String)>,
    /// A table that names the codes of the statuses
    #[arg(long, value_name = "TABLE")]
    status: Option<String>,
    /// What a word of your service's means, such as 3=delivered or null=pending. It can be given again
    #[arg(long, value_name = "WORD=MEANING", value_parser = meaning)]
    means: Vec<(String, Meaning)>,
    /// The ledger's name in the configuration
    #[arg(long, default_value = DEFAULT_NAME, value_parser = name)]
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

/// A role and its column.
fn column(text: &str) -> Result<(Role, String), String> {
    let how = || format!("write ROLE=COLUMN with one of {}", Role::ALL.map(Role::word).join(", "));
    let (word, column) = text.split_once('=').ok_or_else(how)?;
    let role = Role::from_word(word).ok_or_else(how)?;
    if column.is_empty() { Err(how()) } else { Ok((role, column.to_owned())) }
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
    let routes = match &args.config {
        Some(path) => {
            let loaded = wiring::load(&Where { path: path.clone(), location: None })?;
            Some(loaded.config.routes.iter().map(|route| route.full_name().to_string()).collect())
        }
        None => None,
    };
    let asked = Asked {
        name: args.name.clone(),
        database: database(&args.database)?,
        schema: args.schema.clone(),
        notifications: args.notifications.clone(),
        attempts: args.attempts.clone(),
        columns: args.column.iter().cloned().collect(),
        statuses: args.status.clone(),
        meanings: args.means.iter().cloned().collect(),
        routes,
    };
    match propose(&asked).await {
        Ok(proposal) => {
            tell!("{}", proposal.to_yaml());
            Ok(Outcome::Done)
        }
        Err(InitError::Ledger(error)) => Err(error.into()),
        Err(InitError::Columns(gave_up)) => {
            eprintln!("error: {gave_up}");
            if !gave_up.needed.is_empty() {
                eprintln!(
                    "name what is needed, and run this:\n\n  {}\n\nor {BY_HAND}",
                    again(&args, &gave_up)
                );
            }
            Ok(Outcome::Undecided)
        }
        Err(InitError::Unrecognised(text)) => {
            eprintln!("error: {text}");
            Ok(Outcome::Undecided)
        }
    }
}

/// The command with what has to be named in it, for a shell.
fn again(args: &InitArgs, gave_up: &GaveUp) -> String {
    let mut words = vec!["delivery-canary".to_owned(), "ledger".to_owned(), "init".to_owned()];
    let mut add = |option: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{option} {}", quoted(&value))));
    };
    // A password is not repeated: where the URL has one, it is to be in the variable.
    add("--database", (!has_password(&args.database)).then(|| args.database.clone()));
    add("--schema", args.schema.clone());
    add("--notifications", Some(gave_up.notifications.clone()));
    add("--attempts", gave_up.attempts.clone());
    for (role, name) in &args.column {
        add("--column", Some(format!("{}={name}", role.word())));
    }
    for option in gave_up.options() {
        add("--column", Some(option));
    }
    add("--status", args.status.clone());
    for (word, meaning) in &args.means {
        let meaning = serde_json::to_value(meaning).ok().and_then(|value| value.as_str().map(str::to_owned));
        add("--means", meaning.map(|meaning| format!("{word}={meaning}")));
    }
    add("--name", (args.name != DEFAULT_NAME).then(|| args.name.clone()));
    add("--config", args.config.as_ref().map(|path| path.display().to_string()));
    words.join(" ")
}

fn has_password(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.password().is_some())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@,+".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
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
    fn a_column_is_named_by_what_it_is_for() {
        assert_eq!(column("accepted_at=a=b c"), Ok((Role::AcceptedAt, "a=b c".to_owned())));
        for wrong in ["accepted_at", "due=x", "accepted_at="] {
            assert!(column(wrong).unwrap_err().contains("not_before"), "{wrong}");
        }
        assert_eq!((quoted("a_b=c"), quoted("it's")), ("a_b=c".to_owned(), "'it'\\''s'".to_owned()));
        assert!(has_password("postgres://me:secret@h/d") && !has_password("postgres://me@h/d"));
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
