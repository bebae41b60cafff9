//! What plain SQL over a shape's data says, and what the follower says, in the same words.

use super::bed::Database;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use delivery_canary::domain::{
    accounting::Place,
    flow::figures::FlowFigures,
    outcome::Outcome,
    pending::{AGE_BOUNDS_SECONDS, PendingState},
};
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

/// The windows that are compared: one by minutes, and one that begins where only hours are kept.
pub const WINDOWS: [Duration; 2] = [Duration::from_secs(6 * 3_600), Duration::from_secs(72 * 3_600)];

/// The window over which attempts are compared.
pub const ATTEMPTS: Duration = Duration::from_secs(6 * 3_600);

/// Counts by words. What is zero is left out.
pub type Counts = BTreeMap<String, i64>;

/// The SQL that says of a shape what is true, written against its tables and without the configuration.
#[derive(Clone, Copy)]
pub struct Plain {
    /// Gives each customers' notification once: `route`, where it `stands`, and `due` in microseconds since 1970. The words for it are
    /// those of [`Place`], with `unattempted`, `retrying` and `unknown` in the place of `pending`.
    pub units: &'static str,
    /// Gives each attempt that has ended: `route`, `outcome`, and `at` in microseconds since 1970. Nothing where the shape has none.
    pub attempts: Option<&'static str>,
}

/// What the two sides have to agree on beforehand.
pub struct Question<'a> {
    /// As of when.
    pub as_of: DateTime<Utc>,
    /// The routes with their deadlines.
    pub deadlines: &'a BTreeMap<String, Duration>,
    /// The bounds of the windows' cohorts by route, in seconds.
    pub cohorts: &'a BTreeMap<(String, Duration), (i64, i64)>,
}

const PENDING: &str = "stands in ('unattempted', 'retrying', 'unknown')";

impl Plain {
    /// The answer of plain SQL.
    pub async fn answer(&self, database: &Database, question: &Question<'_>) -> Counts {
        let mut connection = database.connect().await;
        let (units, now) = (self.units, question.as_of.timestamp_micros());
        let mut counts = Counts::new();
        let place = format!("case when {PENDING} then 'pending' else stands end");
        let all = format!("select route || ' ' || {place}, count(*) from ({units}) as u group by 1");
        add(&mut connection, &mut counts, "all", &all).await;
        let state = format!("case when due > {now} then 'scheduled' else stands end");
        let sql = format!(
            "select route || ' ' || {state}, count(*) from ({units}) as u where {PENDING} group by 1"
        );
        add(&mut connection, &mut counts, "state", &sql).await;
        let mut buckets = String::new();
        for (place, bound) in AGE_BOUNDS_SECONDS.iter().enumerate() {
            write!(buckets, "when {now} - due <= {} then '{place}' ", bound * 1_000_000)
                .expect("text takes text");
        }
        let sql = format!(
            "select route || ' ' || case {buckets} else '{}' end, count(*) from ({units}) as u where {PENDING} and due <= {now} group by 1",
            AGE_BOUNDS_SECONDS.len()
        );
        add(&mut connection, &mut counts, "age", &sql).await;
        let sql =
            format!("select route, min(due) from ({units}) as u where {PENDING} and due <= {now} group by 1");
        add(&mut connection, &mut counts, "oldest", &sql).await;
        for (route, deadline) in question.deadlines {
            let sql = format!(
                "select route, count(*) from ({units}) as u where {PENDING} and route = '{route}' and {now} - due > {} group by 1",
                deadline.as_micros()
            );
            add(&mut connection, &mut counts, "late", &sql).await;
        }
        for ((route, window), (from, until)) in question.cohorts {
            let sql = format!(
                "select route || ' ' || {place}, count(*) from ({units}) as u \
                 where route = '{route}' and due >= {} and due < {} group by 1",
                from * 1_000_000,
                until * 1_000_000
            );
            add(&mut connection, &mut counts, &format!("in {window:?}"), &sql).await;
        }
        if let Some(attempts) = self.attempts {
            let minute = |at: DateTime<Utc>| at.duration_trunc(TimeDelta::minutes(1)).expect("a minute");
            let (from, until) = (minute(question.as_of - ATTEMPTS), minute(question.as_of));
            let sql = format!(
                "select route || ' ' || outcome, count(*) from ({attempts}) as a where at >= {} and at < {} group by 1",
                from.timestamp_micros(),
                until.timestamp_micros()
            );
            add(&mut connection, &mut counts, "attempts", &sql).await;
        }
        counts
    }
}

async fn add(connection: &mut AnyConnection, counts: &mut Counts, what: &str, sql: &str) {
    let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await;
    for row in rows.unwrap_or_else(|error| panic!("{sql}: {error}")) {
        let (words, count): (String, i64) = (row.get(0), row.get(1));
        counts.insert(format!("{what} {words}"), count);
    }
}

/// The follower's figures in the same words. The division of everything is given beside them, by route.
pub fn followed(figures: &FlowFigures, routes: &[String], all: &BTreeMap<String, [i64; 5]>) -> Counts {
    let mut counts = Counts::new();
    let mut add = |words: String, count: i64| {
        if count != 0 {
            counts.insert(words, count);
        }
    };
    let signed = |count: u64| i64::try_from(count).expect("a small count");
    for (route, figures) in routes.iter().zip(&figures.routes) {
        for place in Place::ALL {
            add(format!("all {route} {}", place.word()), all[route][place as usize]);
            for window in WINDOWS {
                let count = figures.windows[&window].in_place(place);
                add(format!("in {window:?} {route} {}", place.word()), signed(count));
            }
        }
        for state in PendingState::ALL {
            add(format!("state {route} {}", state.word()), signed(figures.pending.in_state(state)));
        }
        for (bucket, count) in figures.pending.ages.iter().enumerate() {
            add(format!("age {route} {bucket}"), signed(*count));
        }
        add(
            format!("oldest {route}"),
            figures.pending.oldest_due.map_or(0, |oldest| oldest.timestamp_micros()),
        );
        add(format!("late {route}"), signed(figures.pending.over_deadline.unwrap_or(0)));
        for outcome in Outcome::ALL {
            let count = figures.windows[&ATTEMPTS].attempts(outcome);
            add(format!("attempts {route} {}", outcome.word()), signed(count));
        }
    }
    counts
}

/// Where two answers differ, for people.
pub fn difference(followed: &Counts, plain: &Counts) -> Option<String> {
    let words = followed.keys().chain(plain.keys()).collect::<std::collections::BTreeSet<_>>();
    let mut text = String::new();
    for word in words {
        let (ours, theirs) = (followed.get(word).unwrap_or(&0), plain.get(word).unwrap_or(&0));
        if ours != theirs {
            write!(text, "\n{word}: followed {ours}, by plain SQL {theirs}").expect("text takes text");
        }
    }
    (!text.is_empty()).then_some(text)
}
