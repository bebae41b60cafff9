//! Writing decisions: each whole or not at all, and only on the version that it was made on.

use super::{
    Decision,
    change::{NewEvent, Open, load, write_events},
    database::Dialect,
    fault::Fault,
    row::{event, ids, instant, int, micros, text},
    statement::{Value, fetch, fetch_in, fetch_values, values},
    stream::Newest,
    sums::Deltas,
};
use crate::domain::{
    canary::{Event, Judgement},
    disagreement::Disagreement,
    route::CanaryId,
};
use chrono::{DateTime, Utc};
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};

/// The judgements and contradictions that a canary had.
#[derive(Clone, Debug, Default)]
struct Before {
    judgements: BTreeSet<Judgement>,
    disagreements: BTreeSet<Disagreement>,
}

/// What a decision changes in the judgement of a canary.
struct Judged {
    settled_at: i64,
    now: Judgement,
}

/// Writes decisions within the open transaction. `false` where the canary has changed since its version. `change` is the answer of
/// [`reserve_changes`].
pub(super) async fn decide(
    conn: &mut AnyConnection,
    dialect: Dialect,
    decisions: &[Decision],
    (now, mut change): (DateTime<Utc>, i64),
    newest: &mut Newest,
    deltas: &mut Deltas,
) -> Result<Vec<bool>, Fault> {
    if decisions.is_empty() {
        return Ok(Vec::new());
    }
    let mut opened = load(conn, dialect, &ids(decisions.iter().map(|d| d.canary_id))).await?;
    let mut before = before(conn, decisions).await?;
    let mut answers = Vec::with_capacity(decisions.len());
    let (mut events, mut plain, mut judged) = (Vec::new(), Vec::new(), Vec::new());
    for decision in decisions {
        let open = opened.get_mut(&decision.canary_id).filter(|o| o.version == decision.version && !o.erased);
        answers.push(open.is_some());
        let Some(open) = open else { continue };
        let before = before.entry(decision.canary_id).or_default();
        for event in &decision.events {
            open.version += 1;
            events.push(NewEvent { canary_id: decision.canary_id, seq: open.version, event });
        }
        if decision.events.is_empty() {
            open.version += 1;
        }
        count_disagreements(decision, open, before, deltas);
        let row = values![decision.canary_id.to_string(), open.version, decision.next_look.map(micros)];
        match judge(decision, open, before, deltas)? {
            None => plain.push(row),
            Some(new) => {
                change += 1;
                judged.push(judged_row(row, &new, decision, change));
            }
        }
    }
    write_events(conn, &events, &opened, now, newest).await?;
    write_back(conn, plain, judged).await?;
    Ok(answers)
}

/// Reserves one number for each decision that may change a judgement; answers the last one before them.
///
/// The counter stays locked until the end of the transaction, so that numbers become visible in their order, in all processes: whoever
/// has read up to one of them has missed none below. A sequence would not promise that. It is locked before any canary, or two
/// processes could each hold what the other waits for.
pub(super) async fn reserve_changes(conn: &mut AnyConnection, decisions: &[Decision]) -> Result<i64, Fault> {
    let wanted = decisions.iter().filter(|d| d.events.iter().any(|e| judgement(e).is_some())).count();
    if wanted == 0 {
        return Ok(0);
    }
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    let text = "UPDATE counter SET value = value + $1 WHERE name = 'change' RETURNING value";
    let rows = fetch(conn, text, values![wanted]).await?;
    let row = rows.first().ok_or_else(|| Fault::corrupt("the counter of judgements", "it is not there"))?;
    Ok(int(row, 0)? - wanted)
}

const fn judgement(event: &Event) -> Option<Judgement> {
    match event {
        Event::Settled(judgement) | Event::Corrected(judgement) => Some(*judgement),
        _ => None,
    }
}

/// What the canaries had been judged to be, where a decision judges or contradicts again.
async fn before(
    conn: &mut AnyConnection,
    decisions: &[Decision],
) -> Result<HashMap<CanaryId, Before>, Fault> {
    let asks = |event: &Event| judgement(event).is_some() || matches!(event, Event::Disagreed { .. });
    let asking = decisions.iter().filter(|d| d.events.iter().any(asks)).map(|d| d.canary_id);
    let head = "SELECT canary_id, body FROM event WHERE canary_id IN";
    let tail = "AND kind IN ('settled', 'corrected', 'disagreed')";
    let mut found: HashMap<CanaryId, Before> = HashMap::new();
    for row in fetch_in(conn, head, tail, &[], &ids(asking)).await? {
        let before = found.entry(super::row::canary_id(&row, 0)?).or_default();
        match event(&text(&row, 1)?)? {
            Event::Disagreed { kind, .. } => drop(before.disagreements.insert(kind)),
            other => before.judgements.extend(judgement(&other)),
        }
    }
    Ok(found)
}

/// Counts each kind of contradiction once a canary.
fn count_disagreements(decision: &Decision, open: &Open, before: &mut Before, deltas: &mut Deltas) {
    for event in &decision.events {
        if let Event::Disagreed { at, kind } = event
            && before.disagreements.insert(*kind)
        {
            deltas.disagreed((&open.route, &open.location), *at, *kind);
        }
    }
}

/// The judgement in force after this decision, where it is another than before. It is chosen as the fold chooses: the last by time.
fn judge(
    decision: &Decision,
    open: &mut Open,
    before: &mut Before,
    deltas: &mut Deltas,
) -> Result<Option<Judged>, Fault> {
    let old = before.judgements.last().copied();
    before.judgements.extend(decision.events.iter().filter_map(judgement));
    let Some(new) = before.judgements.last().copied().filter(|new| Some(*new) != old) else {
        return Ok(None);
    };
    let first = decision.events.iter().find_map(judgement).map_or(new.at, |judgement| judgement.at);
    let settled_at = *open.settled_at.get_or_insert(micros(first));
    deltas.judged(open.kind, (&open.route, &open.location), instant(settled_at)?, old, new);
    Ok(Some(Judged { settled_at, now: new }))
}

fn judged_row(mut row: Vec<Value>, judged: &Judged, decision: &Decision, change: i64) -> Vec<Value> {
    let (verdict, class) = (judged.now.verdict.word(), judged.now.class.word());
    let stopped = decision.stopped.map(|stopped| stopped.word().to_owned());
    row.extend(values![judged.settled_at, verdict, class, stopped, change]);
    row
}

async fn write_back(
    conn: &mut AnyConnection,
    plain: Vec<Vec<Value>>,
    judged: Vec<Vec<Value>>,
) -> Result<(), Fault> {
    let tail = ") AS fresh WHERE canary.canary_id = fresh.column1";
    let head = "UPDATE canary SET version = fresh.column2, next_look = fresh.column3 FROM (";
    fetch_values(conn, head, tail, plain).await?;
    let head = "UPDATE canary SET version = fresh.column2, next_look = fresh.column3, settled_at = fresh.column4, \
                verdict = fresh.column5, class = fresh.column6, stopped = fresh.column7, change_number = fresh.column8 FROM (";
    fetch_values(conn, head, tail, judged).await.map(drop)
}
