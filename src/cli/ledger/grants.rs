//! `ledger grants`: the least rights that the queries need, as statements for the owner of the tables.

use super::{NoSuchLedger, opened};
use crate::cli::{ConfigFile, Outcome, WrongUsage, out::tell, wiring};
use crate::{
    config::{
        Config,
        ledger::{AcceptedSource, Ledger, LedgerDatabase},
        scalar::Secret,
    },
    ledger::grants::Grants,
};
use anyhow::Result;
use clap::Args;
use std::fmt::Write as _;

/// Arguments of `ledger grants`.
#[derive(Debug, Args)]
pub struct GrantsArgs {
    /// The ledger; it may be left out where there is one only
    #[arg(long)]
    ledger: Option<String>,
    /// Whom the rights are for; without it the user of the ledger's URL. On MySQL and MariaDB NAME or NAME@HOST
    #[arg(long, value_name = "NAME")]
    role: Option<String>,
    /// Ask the database by this URL instead of the ledger's own: that of a role that may read the tables already
    #[arg(long, value_name = "URL", env = "DELIVERY_CANARY_OWNER_URL", hide_env_values = true)]
    database: Option<String>,
    /// The rights in the database in which `accepted_elsewhere` counts, instead of those in the ledger's own; `--database` is then a way to that one
    #[arg(long)]
    elsewhere: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// Prints the statements.
pub async fn run(args: GrantsArgs) -> Result<Outcome> {
    let loaded = wiring::load(&(&args.config).into())?;
    let (name, ledger) = only(&loaded.config, args.ledger.as_deref())?;
    let mut ledger = ledger.clone();
    let Some(database) = database_of(&mut ledger, args.elsewhere) else {
        let reason = format!(
            "`--elsewhere` is for a ledger whose `accepted_elsewhere` counts in a database, by `sql`, and that of `{name}` does not"
        );
        return Err(WrongUsage(reason).into());
    };
    let role = match (args.role, user(database)) {
        (Some(role), _) if role.trim().is_empty() => {
            return Err(WrongUsage("`--role` is empty: write whom the rights are for".into()).into());
        }
        (Some(role), _) | (None, Some(role)) => role,
        (None, None) if matches!(database, LedgerDatabase::Sqlite(_)) => String::new(),
        (None, None) => {
            return Err(WrongUsage(format!(
                "the URL of the ledger `{name}` names no user: say by --role whom the rights are for"
            ))
            .into());
        }
    };
    if let Some(url) = args.database {
        reach(database, &url)?;
    }
    let adapter = opened(name, &ledger)?;
    let (what, grants) = if args.elsewhere {
        // It was just found to have one.
        (
            format!("`accepted_elsewhere` of the ledger `{name}`"),
            adapter.grants_elsewhere(&role).await?.unwrap_or_default(),
        )
    } else {
        (format!("the ledger `{name}`"), adapter.grants(&role).await?)
    };
    tell!("{}", text(&what, &grants));
    let is_open = grants.notes.iter().any(|note| note.is_open);
    Ok(if is_open { Outcome::Undecided } else { Outcome::Done })
}

/// The database that the rights are in; nothing where the accepted are counted elsewhere by no database.
fn database_of(ledger: &mut Ledger, is_elsewhere: bool) -> Option<&mut LedgerDatabase> {
    if !is_elsewhere {
        return Some(&mut ledger.database);
    }
    match &mut ledger.accepted_elsewhere.as_mut()?.source {
        AcceptedSource::Sql(sql) => Some(&mut sql.database),
        AcceptedSource::PrometheusText(_) | AcceptedSource::Promql(_) => None,
    }
}

/// The ledger that was asked for, or the only one: the statements are for one database.
fn only<'a>(config: &'a Config, name: Option<&str>) -> Result<(&'a str, &'a Ledger)> {
    let known = || config.ledgers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let found = config.ledgers.get_key_value(name);
        return match found {
            Some((name, ledger)) => Ok((name, ledger)),
            None => Err(NoSuchLedger { name: name.to_owned(), known: known() }.into()),
        };
    }
    let mut ledgers = config.ledgers.iter();
    match (ledgers.next(), ledgers.next()) {
        (Some((name, ledger)), None) => Ok((name, ledger)),
        (None, _) => Err(wiring::ConfigurationAtFault(
            "the configuration has no `ledgers`: there is nothing to grant".into(),
        )
        .into()),
        (Some(_), Some(_)) => {
            let reason = format!(
                "there are several ledgers, each with its own database: name one by --ledger: {}",
                known()
            );
            Err(WrongUsage(reason).into())
        }
    }
}

/// The user that a URL names.
fn user(database: &LedgerDatabase) -> Option<String> {
    let url = match database {
        LedgerDatabase::Postgres(postgres) => &postgres.url,
        LedgerDatabase::Mysql(mysql) => &mysql.url,
        LedgerDatabase::Sqlite(_) => return None,
    };
    let url = reqwest::Url::parse(url.expose()).ok()?;
    let of_query = || url.query_pairs().find(|(key, _)| key == "user").map(|(_, user)| user.into_owned());
    // What is escaped in the place before the host is read as in a query.
    let escaped = url.username().replace('+', "%2B");
    let plain = reqwest::Url::parse(&format!("x:?u={escaped}")).ok()?;
    let plain = plain.query_pairs().next().map(|(_, user)| user.into_owned()).filter(|user| !user.is_empty());
    plain.or_else(of_query)
}

/// Reaches a database by another URL.
fn reach(database: &mut LedgerDatabase, url: &str) -> Result<()> {
    let is_for = |schemes: &[&str]| schemes.iter().any(|scheme| url.starts_with(scheme));
    let wanted = match database {
        LedgerDatabase::Postgres(postgres) if is_for(&["postgres://", "postgresql://"]) => {
            postgres.url = Secret::new(url);
            return Ok(());
        }
        LedgerDatabase::Mysql(mysql) if is_for(&["mysql://", "mariadb://"]) => {
            mysql.url = Secret::new(url);
            return Ok(());
        }
        LedgerDatabase::Postgres(_) => "write `postgres://user:password@host/database`",
        LedgerDatabase::Mysql(_) => "write `mysql://user:password@host/database`",
        LedgerDatabase::Sqlite(_) => {
            "the ledger is a file, and has no other way to it: leave `--database` out"
        }
    };
    Err(WrongUsage(format!("`--database` does not fit the ledger: {wanted}")).into())
}

/// The statements with what is to be known of them, as a script.
fn text(what: &str, grants: &Grants) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    if grants.statements.is_empty() {
        let _ = writeln!(out, "-- Nothing is to be granted for {what}.");
    } else {
        let _ = writeln!(
            out,
            "-- The least that {} needs in the database {} to read {what}. For the owner of the tables to run; it can be run\n\
             -- again. It takes nothing away: what the role may do beyond this, `delivery-canary ledger check` tells.",
            grants.role, grants.database
        );
    }
    for statement in &grants.statements {
        let _ = writeln!(out, "{statement}");
    }
    for note in &grants.notes {
        let word = if note.is_open { "TO BE DECIDED" } else { "note" };
        let _ = writeln!(out, "-- {word}: {}", note.text.replace(['\n', '\r'], " "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ledger::{MysqlLedger, PostgresLedger};

    #[test]
    fn the_user_of_a_url_is_told_without_its_password() {
        for (url, expected) in [
            ("postgres://canary:secret@db/app", Some("canary")),
            ("postgres://can%40ary+1@db/app", Some("can@ary+1")),
            ("postgres://db/app?user=canary", Some("canary")),
            ("postgres://db/app", None),
        ] {
            let postgres = PostgresLedger { url: Secret::new(url), max_connections: 2 };
            assert_eq!(user(&LedgerDatabase::Postgres(postgres)).as_deref(), expected, "{url}");
        }
        let mysql = MysqlLedger { url: Secret::new("mysql://reader@db/app"), max_connections: 2 };
        assert_eq!(user(&LedgerDatabase::Mysql(mysql)).as_deref(), Some("reader"));
    }

    #[test]
    fn a_note_stays_behind_its_dashes() {
        let note = crate::ledger::grants::Note { text: "a\nb; drop table x".into(), is_open: true };
        let grants = Grants { notes: vec![note], ..Grants::default() };
        assert!(text("l", &grants).lines().all(|line| line.starts_with("--")));
    }
}
