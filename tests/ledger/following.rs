//! What the tests of a followed ledger share: configurations, and streams read to their end.

use super::support::{Bed, ends, open};
use delivery_canary::{
    domain::flow::rows::{AttemptRow, LedgerId, NotificationRow, UnitId},
    ledger::{
        LedgerError, Position,
        flow::{FlowReader, LedgerFlow, Page, Seen},
    },
};
use serde_json::{Value, json};

/// More pages than any test has.
const MOST_PAGES: usize = 200;

/// How this database takes a list of ids.
pub fn any_of(bed: &Bed, column: &str, cast: &str) -> String {
    bed.any_of(column, cast)
}

/// A lookup that suits any table of notifications.
pub fn some_lookup(bed: &Bed) -> Value {
    let of_them = any_of(bed, "id", "");
    json!({
        "sql": format!("select 'x' as id, 'x' as status from (select 'x' as id) as n where {of_them} limit :limit"),
        "columns": { "notification_id": "id", "status": "status" },
    })
}

/// The stream of a query, with a cursor of `at` (in this form) and `id`.
pub fn notifications(sql: &str, at: Value) -> Value {
    json!({
        "sql": sql,
        "columns": { "notification_id": "id", "accepted_at": at, "route": "route" },
        "cursor": { "at": at, "id": "id" },
        "routes": { "mail": "email/receipts", "sms": "sms/codes" },
    })
}

/// A followed ledger: `fields` on top of what each has.
pub fn follow(bed: &Bed, fields: Value) -> Result<LedgerFlow, LedgerError> {
    let mut all = json!({ "lookup": some_lookup(bed), "max_rows": 4, "statement_timeout": "20s" });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Ok(open(bed.database(), all)?.flow().expect("it is followed"))
}

/// Reads pages until one is not full. The place between two of them is kept as text, as over a restart.
async fn to_the_end<R>(mut page: impl AsyncFnMut(Option<&Position>) -> Page<R>) -> Vec<Seen<R>> {
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let read = page(after.as_ref()).await;
        let is_full = read.is_full;
        after = read.last().map(|last| Position::from_text(&last.to_text()).unwrap()).or(after);
        rows.extend(read.rows);
        if !is_full {
            return rows;
        }
    }
    panic!("no end after {MOST_PAGES} pages");
}

pub async fn all_notifications(flow: &LedgerFlow) -> Vec<Seen<NotificationRow>> {
    to_the_end(async |after| ends("a page", flow.notifications_page(after, None)).await.unwrap()).await
}

pub async fn all_attempts(flow: &LedgerFlow) -> Vec<Seen<AttemptRow>> {
    to_the_end(async |after| ends("a page", flow.attempts_page(after, None)).await.unwrap()).await
}

/// An id as the ledger writes it.
pub fn text(id: &LedgerId) -> String {
    match id {
        LedgerId::Int(number) => number.to_string(),
        LedgerId::Uuid(bytes) => uuid::Uuid::from_bytes(*bytes).to_string(),
        LedgerId::Text(text) => text.to_string(),
    }
}

pub fn unit(number: i64) -> UnitId {
    UnitId { notification: LedgerId::Int(number), destination: None }
}
