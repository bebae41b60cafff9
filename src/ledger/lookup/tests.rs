use super::*;
use crate::{config::ledger::Column, domain::outcome::Cause};
use proptest::prelude::*;

fn now() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn name(name: &str) -> Option<Column> {
    Some(Column::Name(name.into()))
}

fn columns() -> LookupColumns {
    LookupColumns {
        notification_id: Column::Name("id".into()),
        idempotency_key: name("key"),
        destination: None,
        route: None,
        accepted_at: name("accepted_at"),
        not_before: None,
        status: name("status"),
        attempt_id: name("attempt_id"),
        attempt_status: name("attempt_status"),
        attempt_at: name("attempt_at"),
        next_attempt: None,
        policy_version: name("policy"),
    }
}

fn words() -> Words {
    Words::new(&BTreeMap::from(
        [
            ("ok", Meaning::Delivered),
            ("again", Meaning::Retryable),
            ("dead", Meaning::RejectedRecipient),
            ("broken", Meaning::RejectedService),
            ("held", Meaning::Suppressed),
            ("open", Meaning::Pending),
            ("lost_track", Meaning::Unknown),
            ("true", Meaning::Delivered),
            ("2", Meaning::Retryable),
        ]
        .map(|(word, meaning)| (word.to_owned(), meaning)),
    ))
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

fn seconds_ago(seconds: i64) -> Cell {
    Cell::Instant(now() - chrono::TimeDelta::seconds(seconds))
}

/// A row: the notification's status, and an attempt (id, status, seconds ago).
fn row(id: &str, status: Option<&str>, attempt: Option<(&str, &str, i64)>) -> Vec<Cell> {
    let or_null = |value: Option<&str>| value.map_or(Cell::Null, text);
    vec![
        text(id),
        text(&format!("key-{id}")),
        seconds_ago(600),
        or_null(status),
        or_null(attempt.map(|(id, _, _)| id)),
        or_null(attempt.map(|(_, status, _)| status)),
        attempt.map_or(Cell::Null, |(_, _, ago)| seconds_ago(ago)),
        text("v7"),
    ]
}

fn join(rows: &[Vec<Cell>]) -> (Vec<Found>, Notes) {
    let mut notes = Notes::default();
    let found = LookupLayout::new(&columns()).unwrap().join(rows, &words(), &[], now(), &mut notes).unwrap();
    (found, notes)
}

fn stands(rows: &[Vec<Cell>]) -> (Disposition, Option<Cause>) {
    let (found, _) = join(rows);
    assert_eq!(found.len(), 1);
    (found[0].row.disposition, found[0].row.cause)
}

/// What attempts under way have would otherwise outweigh what became of the others.
#[test]
fn null_leaves_it_to_the_attempts_even_where_the_table_has_it() {
    for table in [
        words(),
        Words::new(&BTreeMap::from([("null".into(), Meaning::Pending), ("ok".into(), Meaning::Delivered)])),
    ] {
        let mut notes = Notes::default();
        let rows = [row("a", None, Some(("1", "ok", 30)))];
        let layout = LookupLayout::new(&columns()).unwrap();
        let found = layout.join(&rows, &table, &[], now(), &mut notes).unwrap();
        assert_eq!(found[0].row.disposition, Disposition::Delivered);
        assert_eq!(notes.unmapped_statuses, 0, "{:?}", notes.words);
    }
}

#[test]
fn rows_of_one_notification_are_one_finding() {
    let rows = [
        row("a", None, Some(("1", "again", 60))),
        row("b", None, None),
        row("a", None, Some(("2", "ok", 30))),
        row("a", None, Some(("2", "ok", 30))),
    ];
    let (found, _) = join(&rows);
    assert_eq!(found.len(), 2);
    let a = &found[0];
    assert_eq!(
        (a.notification_id.as_str(), a.key.as_ref().map(IdempotencyKey::as_str)),
        ("a", Some("key-a"))
    );
    assert_eq!(
        (a.row.disposition, a.row.attempts.len(), a.row.has_policy_version),
        (Disposition::Delivered, 2, true)
    );
    assert_eq!(a.row.accepted_at, Some(now() - chrono::TimeDelta::seconds(600)));
    assert_eq!(found[1].row.disposition, Disposition::Pending);
    assert!(found[1].row.attempts.is_empty());
}

#[test]
fn the_newest_terminal_attempt_decides() {
    let bounced = [row("a", None, Some(("2", "dead", 10))), row("a", None, Some(("1", "ok", 60)))];
    assert_eq!(stands(&bounced), (Disposition::PermanentlyRejected, Some(Cause::Recipient)));
    let retried_after = [row("a", None, Some(("1", "ok", 60))), row("a", None, Some(("2", "again", 10)))];
    assert_eq!(stands(&retried_after), (Disposition::Delivered, None));
    for (status, expected) in [
        ("ok", (Disposition::Delivered, None)),
        ("broken", (Disposition::PermanentlyRejected, Some(Cause::Service))),
        ("held", (Disposition::Suppressed, None)),
        ("again", (Disposition::Pending, None)),
        ("open", (Disposition::Pending, None)),
        ("lost_track", (Disposition::Pending, None)),
        ("never heard of", (Disposition::Pending, None)),
    ] {
        assert_eq!(stands(&[row("a", None, Some(("1", status, 1)))]), expected, "{status}");
    }
}

#[test]
fn without_times_ids_decide_as_numbers() {
    let mut rows = [row("a", None, Some(("9", "ok", 0))), row("a", None, Some(("10", "dead", 0)))];
    rows.iter_mut().for_each(|row| row[6] = Cell::Null);
    assert_eq!(stands(&rows), (Disposition::PermanentlyRejected, Some(Cause::Recipient)));
}

#[test]
fn the_own_status_decides_where_it_is_known() {
    for (status, expected) in [
        ("held", Disposition::Suppressed),
        ("open", Disposition::Pending),
        ("again", Disposition::Pending),
        ("lost_track", Disposition::Delivered),
        ("never heard of", Disposition::Delivered),
    ] {
        let rows = [row("a", Some(status), Some(("1", "ok", 1)))];
        assert_eq!(stands(&rows).0, expected, "{status}");
    }
}

#[test]
fn an_attempt_under_way_has_no_outcome_and_unmapped_ones_are_unknown_and_counted() {
    let rows = [
        row("a", Some("ok"), Some(("1", "open", 9))),
        row("a", Some("ok"), Some(("2", "WHAT", 5))),
        row("a", Some("ok"), Some(("3", "WHAT", 4))),
    ];
    let (found, notes) = join(&rows);
    let outcomes: Vec<Outcome> = found[0].row.attempts.iter().map(|a| a.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::Unknown]);
    assert_eq!((notes.unmapped_statuses, notes.words), (2, BTreeSet::from(["WHAT".to_owned()])));
}

#[test]
fn statuses_of_other_types_are_looked_up_as_text() {
    for (cell, expected) in [
        (Cell::Bool(true), Outcome::Delivered),
        (Cell::Bool(false), Outcome::Unknown),
        (Cell::Int(2), Outcome::Retryable),
        (Cell::Decimal("2".into()), Outcome::Retryable),
        (Cell::Null, Outcome::Unknown),
    ] {
        let mut row = row("a", Some("ok"), Some(("1", "", 1)));
        row[5] = cell.clone();
        assert_eq!(join(&[row]).0[0].row.attempts.first().unwrap().outcome, expected, "{cell:?}");
    }
}

#[test]
fn trial_23_a_bad_time_is_no_time_and_counted() {
    let mut row = row("a", Some("ok"), Some(("1", "ok", 1)));
    (row[2], row[6]) = (Cell::Null, Cell::Instant(DateTime::UNIX_EPOCH));
    let (found, notes) = join(&[row]);
    assert_eq!((found[0].row.accepted_at, found[0].row.attempts.first().unwrap().at), (None, None));
    assert_eq!(notes.refused_times, 2);
}

#[test]
fn a_uuid_comes_back_as_it_was_asked_for() {
    let asked = NotificationId::from_text("0193C1A0-0000-7000-8000-00000000000A");
    let mut first = row("", Some("ok"), None);
    first[0] = Cell::Uuid(Uuid::parse_str(asked.as_str()).unwrap());
    let layout = LookupLayout::new(&columns()).unwrap();
    let mut notes = Notes::default();
    let found = layout.join(&[first], &words(), std::slice::from_ref(&asked), now(), &mut notes).unwrap();
    assert_eq!(found[0].notification_id, asked);
    assert_eq!(found[0].row.notification_ids, BTreeSet::from([asked]));
}

#[test]
fn values_that_are_no_ids_are_refused_with_the_column() {
    for cell in
        [Cell::Null, Cell::Bool(true), Cell::Other("JSONB".into()), text(&"x".repeat(257)), text("a\nb")]
    {
        let mut row = row("a", None, None);
        row[0] = cell.clone();
        let layout = LookupLayout::new(&columns()).unwrap();
        let misfit = layout.join(&[row], &words(), &[], now(), &mut Notes::default()).unwrap_err();
        assert_eq!(misfit.column, "id", "{cell:?}");
    }
}

#[test]
fn columns_that_need_others_are_refused() {
    type Change = fn(&mut LookupColumns);
    let cases: [(Change, &str); 4] = [
        (|c| c.attempt_id = None, "`columns.attempt_id`"),
        (|c| c.attempt_status = None, "`columns.attempt_status`"),
        (|c| (c.attempt_id, c.attempt_status, c.status) = (None, None, None), "`columns.status`"),
        (
            |c| {
                let time = crate::config::ledger::TimeForm::Iso;
                c.status = Some(Column::Typed(crate::config::ledger::TypedColumn {
                    name: "s".into(),
                    time,
                    zone: None,
                }));
            },
            "only a time",
        ),
    ];
    for (change, expected) in cases {
        let mut columns = columns();
        change(&mut columns);
        let misfit = LookupLayout::new(&columns).unwrap_err();
        assert!(misfit.problem.contains(expected), "{}", misfit.problem);
    }
}

proptest! {
    /// The order in which a database gives the rows means nothing.
    #[test]
    fn order_of_rows_changes_nothing(
        rows in prop::collection::vec(
            ("[ab]", prop::option::of(("[1-9]", prop_oneof![Just("ok"), Just("again"), Just("dead"), Just("held"), Just("x")]))),
            0..8,
        ),
        seed in any::<prop::sample::Index>(),
    ) {
        // One attempt has one status and one time, however often it is read.
        let row_of = |(id, attempt): &(String, Option<(String, &'static str)>)| {
            let attempt = attempt.as_ref().map(|(n, status)| (format!("{n}{status}"), *status, i64::from(n.as_bytes()[0] % 3)));
            row(id, None, attempt.as_ref().map(|(id, status, ago)| (id.as_str(), *status, *ago)))
        };
        let rows: Vec<Vec<Cell>> = rows.iter().map(row_of).collect();
        let mut turned = rows.clone();
        if !turned.is_empty() {
            let by = seed.index(turned.len());
            turned.rotate_left(by);
        }
        turned.reverse();
        prop_assert_eq!(join(&rows).0, join(&turned).0);
    }
}
