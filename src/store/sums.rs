//! The sums: what a transaction adds to them, and reading them over a window.

use super::{
    fault::Fault,
    levels::{LEVELS, cover},
    row::{int, micros, text},
    statement::{Value, fetch, fetch_values, values},
};
use crate::domain::{
    canary::{CanaryKind, Judgement},
    disagreement::Disagreement,
    route::{Location, RouteName},
    verdict::{Class, Verdict},
};
use chrono::{DateTime, Utc};
use sqlx::{AnyConnection, any::AnyRow};
use std::collections::BTreeMap;

/// One sum over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSum {
    /// The route.
    pub route: RouteName,
    /// The location.
    pub location: Location,
    /// The verdict.
    pub verdict: Verdict,
    /// The class.
    pub class: Class,
    /// How many canaries in the SLI.
    pub count: u64,
}

/// One sum of a control arm over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlSum {
    /// The route.
    pub route: RouteName,
    /// The location.
    pub location: Location,
    /// Which arm.
    pub kind: CanaryKind,
    /// The class.
    pub class: Class,
    /// How many canaries.
    pub count: u64,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    /// Canaries of the SLI by verdict and class, in the bucket of their first settlement.
    Verdict,
    /// Canaries of the control arms by kind and class, in the bucket of their first settlement.
    Control,
    /// Contradictions of the views, in the bucket in which they were found.
    Disagreement,
    /// Changes of a ledger's history, in the bucket in which they were found; the ledger is in the place of the route.
    History,
}

/// Besides changes of history, so many notifications were compared.
pub(super) const COMPARED: &str = "compared";

impl Family {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Verdict, Self::Control, Self::Disagreement, Self::History];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Control => "control",
            Self::Disagreement => "disagreement",
            Self::History => "history",
        }
    }
}

/// One sum: family, level, bucket, route, location, word, class. Ordered, so that every process locks rows in one order.
type Key = (Family, i64, i64, RouteName, Location, &'static str, &'static str);

/// What a transaction adds to the sums.
#[derive(Debug, Default)]
pub(super) struct Deltas(BTreeMap<Key, i64>);

impl Deltas {
    /// A canary now stands at `new`; `old` says where it stood. Its bucket is that of its first settlement. Only those of the SLI and
    /// of the control arms are counted.
    pub(super) fn judged(
        &mut self,
        kind: CanaryKind,
        place: (&RouteName, &Location),
        first_settled: DateTime<Utc>,
        old: Option<Judgement>,
        new: Judgement,
    ) {
        let family = match kind {
            kind if kind.is_in_sli() => Family::Verdict,
            kind if kind.is_control() => Family::Control,
            _ => return,
        };
        for (judgement, amount) in old.map(|old| (old, -1)).into_iter().chain([(new, 1)]) {
            let word = if family == Family::Control { kind.word() } else { judgement.verdict.word() };
            self.add(family, first_settled, place, (word, judgement.class.word()), amount);
        }
    }

    /// A contradiction was found.
    pub(super) fn disagreed(
        &mut self,
        (route, location): (&RouteName, &Location),
        at: DateTime<Utc>,
        kind: Disagreement,
    ) {
        self.add(Family::Disagreement, at, (route, location), (kind.word(), ""), 1);
    }

    /// The audit of a ledger found so many of this.
    pub(super) fn audited(&mut self, ledger: &str, at: DateTime<Utc>, word: &'static str, count: u64) {
        let (ledger, nowhere) = (RouteName::from_text(ledger), Location::from_text(""));
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.add(Family::History, at, (&ledger, &nowhere), (word, ""), count);
    }

    fn add(
        &mut self,
        family: Family,
        at: DateTime<Utc>,
        (route, location): (&RouteName, &Location),
        (word, class): (&'static str, &'static str),
        amount: i64,
    ) {
        for level in LEVELS {
            let bucket = level.bucket(micros(at));
            let key = (family, level.seconds, bucket, route.clone(), location.clone(), word, class);
            *self.0.entry(key).or_default() += amount;
        }
    }

    /// Writes them.
    pub(super) async fn write(self, conn: &mut AnyConnection) -> Result<(), Fault> {
        let rows: Vec<Vec<Value>> = self
            .0
            .into_iter()
            .filter(|(_, amount)| *amount != 0)
            .map(|((family, level, bucket, route, location, word, class), amount)| {
                values![family.word(), level, bucket, route.as_str(), location.as_str(), word, class, amount]
            })
            .collect();
        let head = "INSERT INTO sums (family, level, bucket, route, location, word, class, amount)";
        let tail = "ON CONFLICT (family, level, bucket, route, location, word, class) \
                    DO UPDATE SET amount = sums.amount + excluded.amount";
        fetch_values(conn, head, tail, rows).await.map(drop)
    }
}

/// Sums of a family over [from, until) that are above zero: rows of route, location, word, class, amount.
pub(super) async fn read(
    conn: &mut AnyConnection,
    family: Family,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<Vec<AnyRow>, Fault> {
    let ranges = cover(from, until, kept_from(conn).await?);
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let mut first = 2;
    let mut parts = Vec::new();
    let mut values = values![family.word()];
    for range in ranges {
        parts.push(format!(
            "SELECT route, location, word, class, amount FROM sums \
             WHERE family = $1 AND level = ${first} AND bucket >= ${} AND bucket < ${}",
            first + 1,
            first + 2
        ));
        values.extend(values![range.level.seconds, range.from, range.until]);
        first += 3;
    }
    let text = format!(
        "SELECT route, location, word, class, CAST(SUM(amount) AS BIGINT) FROM ({}) AS parts \
         GROUP BY route, location, word, class HAVING SUM(amount) > 0",
        parts.join(" UNION ALL ")
    );
    fetch(conn, text, values).await
}

/// From when on each level has its sums, in microseconds.
async fn kept_from(conn: &mut AnyConnection) -> Result<[i64; LEVELS.len()], Fault> {
    let rows = fetch(conn, "SELECT name, value FROM counter WHERE name LIKE 'kept_%'", vec![]).await?;
    let mut kept = [0; LEVELS.len()];
    for row in rows {
        let name = text(&row, 0)?;
        let place = LEVELS.iter().position(|level| name == kept_name(level.seconds));
        if let Some(place) = place {
            kept[place] = int(&row, 1)?;
        }
    }
    Ok(kept)
}

/// The name of the counter that says from when on a level has its sums.
pub(super) fn kept_name(seconds: i64) -> String {
    format!("kept_{seconds}")
}
