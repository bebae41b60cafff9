//! Planning: one canary a key, below its cap, unless paused.

use super::{
    Lease, PlanRequest, Planned,
    fault::Fault,
    row::{PLAN, int, maybe_text, micros, plan_values, text},
    statement::{Value, fetch, fetch_in, fetch_values, values},
    stream::Newest,
};
use sqlx::AnyConnection;
use std::collections::{BTreeMap, HashMap, HashSet};

const HOUR: i64 = 3_600_000_000;

/// A wish and the lease under which it is held.
pub(super) type Wish = (PlanRequest, Lease);

/// The key of a cap: route, location, clock hour.
type CapKey = (String, String, i64);

/// What the store knows before it plans.
#[derive(Debug, Default)]
struct Known {
    taken: HashSet<String>,
    /// When the pause of a route ends; `None` is the one of all routes.
    pauses: HashMap<Option<String>, i64>,
    planned: BTreeMap<CapKey, i64>,
}

/// Plans canaries within the open transaction. The answers are in the order of the wishes.
pub(super) async fn plan(
    conn: &mut AnyConnection,
    wishes: &[Wish],
    newest: &mut Newest,
) -> Result<Vec<Planned>, Fault> {
    if wishes.is_empty() {
        return Ok(Vec::new());
    }
    // The counters are locked first: two processes that plan the same hour wait for each other here.
    let planned = lock_caps(conn, wishes).await?;
    let known = Known { taken: taken(conn, wishes).await?, pauses: pauses(conn).await?, planned };
    let mut answers = choose(wishes, known);
    let mut chosen: Vec<&Wish> =
        wishes.iter().zip(&answers).filter(|(_, a)| **a == Planned::Ours).map(|(w, _)| w).collect();
    chosen.sort_by_key(|(wish, _)| &wish.plan.key);
    let inserted = insert(conn, &chosen).await?;
    let mut counts: BTreeMap<CapKey, i64> = BTreeMap::new();
    for ((wish, _), answer) in wishes.iter().zip(&mut answers) {
        if *answer != Planned::Ours {
            continue;
        }
        // Another process had the same key in another hour's hands: its insert came first.
        if !inserted.contains(&wish.plan.canary_id.to_string()) {
            *answer = Planned::Taken;
            continue;
        }
        *counts.entry(cap_key(wish)).or_default() += 1;
        newest.planned((&wish.plan.route, &wish.plan.location, wish.plan.kind), wish.plan.slot);
    }
    add_to_caps(conn, counts).await?;
    Ok(answers)
}

/// Decides on each wish in turn: what an earlier one of the same call takes, a later one meets.
fn choose(wishes: &[Wish], mut known: Known) -> Vec<Planned> {
    let mut decide = |wish: &PlanRequest| {
        let paused =
            |route| known.pauses.get(&route).is_some_and(|ends| *ends > micros(wish.plan.planned_at));
        if known.taken.contains(wish.plan.key.as_str()) {
            return Planned::Taken;
        }
        if paused(None) || paused(Some(wish.plan.route.as_str().to_owned())) {
            return Planned::Paused;
        }
        let planned = known.planned.entry(cap_key(wish)).or_default();
        if *planned >= i64::from(wish.hourly_cap) {
            return Planned::CapReached;
        }
        *planned += 1;
        known.taken.insert(wish.plan.key.as_str().to_owned());
        Planned::Ours
    };
    wishes.iter().map(|(wish, _)| decide(wish)).collect()
}

fn cap_key(wish: &PlanRequest) -> CapKey {
    let at = micros(wish.plan.planned_at);
    (wish.plan.route.as_str().to_owned(), wish.plan.location.as_str().to_owned(), at - at.rem_euclid(HOUR))
}

/// Locks the counters of these wishes, made where they are not there, and reads them.
async fn lock_caps(conn: &mut AnyConnection, wishes: &[Wish]) -> Result<BTreeMap<CapKey, i64>, Fault> {
    let keys = wishes.iter().map(|(wish, _)| (cap_key(wish), 0)).collect();
    let mut planned = BTreeMap::new();
    for row in upsert_caps(conn, keys).await? {
        planned.insert((text(&row, 0)?, text(&row, 1)?, int(&row, 2)?), int(&row, 3)?);
    }
    Ok(planned)
}

async fn add_to_caps(conn: &mut AnyConnection, counts: BTreeMap<CapKey, i64>) -> Result<(), Fault> {
    upsert_caps(conn, counts).await.map(drop)
}

async fn upsert_caps(
    conn: &mut AnyConnection,
    counts: BTreeMap<CapKey, i64>,
) -> Result<Vec<sqlx::any::AnyRow>, Fault> {
    let rows =
        counts.into_iter().map(|((route, location, hour), n)| values![route, location, hour, n]).collect();
    let head = "INSERT INTO cap (route, location, clock_hour, planned)";
    let tail = "ON CONFLICT (route, location, clock_hour) DO UPDATE SET planned = cap.planned + excluded.planned \
                RETURNING route, location, clock_hour, planned";
    fetch_values(conn, head, tail, rows).await
}

async fn taken(conn: &mut AnyConnection, wishes: &[Wish]) -> Result<HashSet<String>, Fault> {
    let keys: Vec<String> = wishes.iter().map(|(wish, _)| wish.plan.key.as_str().to_owned()).collect();
    let head = "SELECT idempotency_key FROM canary WHERE idempotency_key IN";
    fetch_in(conn, head, "", &[], &keys).await?.iter().map(|row| text(row, 0)).collect()
}

async fn pauses(conn: &mut AnyConnection) -> Result<HashMap<Option<String>, i64>, Fault> {
    let rows = fetch(conn, "SELECT NULLIF(route, ''), ends_at FROM pause", vec![]).await?;
    rows.iter().map(|row| Ok((maybe_text(row, 0)?, int(row, 1)?))).collect()
}

/// Inserts the chosen; answers the ids of those that were not there.
async fn insert(conn: &mut AnyConnection, chosen: &[&Wish]) -> Result<HashSet<String>, Fault> {
    let rows: Vec<Vec<Value>> = chosen
        .iter()
        .map(|(wish, lease)| {
            let mut row = plan_values(&wish.plan);
            row.extend(values![
                1i64,
                0i64,
                micros(wish.next_look),
                lease.owner.as_str(),
                micros(lease.until),
                0i64
            ]);
            row
        })
        .collect();
    let head = format!(
        "INSERT INTO canary ({PLAN}, version, receipts, next_look, lease_owner, lease_until, erased)"
    );
    let tail = "ON CONFLICT (idempotency_key) DO NOTHING RETURNING canary_id";
    fetch_values(conn, &head, tail, rows).await?.iter().map(|row| text(row, 0)).collect()
}
