use super::*;
use crate::config::ledger::Column;

fn now() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> DateTime<Utc> {
    now() - chrono::TimeDelta::seconds(seconds)
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

fn columns() -> PendingColumns {
    let name = |name: &str| Column::Name(name.into());
    PendingColumns {
        route: Some(name("route")),
        accepted_at: name("accepted_at"),
        not_before: Some(name("not_before")),
        status: Some(name("status")),
        count: Some(name("n")),
    }
}

/// In the order in which the layout wants them.
fn row(accepted_at: Cell, route: Cell, not_before: Cell, status: Cell, count: Cell) -> Vec<Cell> {
    vec![accepted_at, route, not_before, status, count]
}

fn plain(status: Cell) -> Vec<Cell> {
    row(Cell::Instant(ago(30)), text("r"), Cell::Null, status, Cell::Int(1))
}

fn words() -> Words {
    Words::new(&BTreeMap::from(
        [
            ("again", Meaning::Retryable),
            ("open", Meaning::Pending),
            ("ok", Meaning::Delivered),
            ("?", Meaning::Unknown),
        ]
        .map(|(word, meaning)| (word.to_owned(), meaning)),
    ))
}

fn routes() -> BTreeMap<String, String> {
    BTreeMap::from([("r".to_owned(), "email/receipts".to_owned()), ("7".to_owned(), "sms/codes".to_owned())])
}

fn map(rows: &[Vec<Cell>]) -> (Backlog, Notes) {
    let mut notes = Notes::default();
    let layout = BacklogLayout::new(&columns(), &routes()).unwrap();
    (layout.map(rows, &words(), now(), &mut notes).unwrap(), notes)
}

#[test]
fn a_status_says_what_was_tried() {
    for (status, tried) in [
        (Cell::Null, Some(Tried::Never)),
        (text("open"), Some(Tried::Never)),
        (text("again"), Some(Tried::WillRetry)),
        (text("?"), Some(Tried::OutcomeUnknown)),
        (text("WHAT"), Some(Tried::OutcomeUnknown)),
        (text("ok"), None),
    ] {
        let (backlog, notes) = map(&[plain(status.clone())]);
        assert_eq!(backlog.rows.first().map(|r| r.tried), tried, "{status:?}");
        assert_eq!(backlog.settled_rows, u64::from(tried.is_none()));
        assert_eq!(notes.unmapped_statuses, u64::from(status == text("WHAT")));
    }
}

#[test]
fn trial_29_due_is_the_later_of_acceptance_and_not_before() {
    let due = |accepted_at, not_before| {
        let (backlog, notes) = map(&[row(accepted_at, text("r"), not_before, Cell::Null, Cell::Int(3))]);
        (backlog.rows[0].due, notes.refused_times)
    };
    let instant = |seconds| Cell::Instant(ago(seconds));
    assert_eq!(due(instant(50), Cell::Null), (Some(ago(50)), 0));
    assert_eq!(due(instant(50), instant(20)), (Some(ago(20)), 0));
    assert_eq!(due(instant(50), instant(90)), (Some(ago(50)), 0));
    assert_eq!(due(instant(50), instant(-86_400 * 30)), (Some(ago(-86_400 * 30)), 0));
    assert_eq!(due(Cell::Null, instant(20)), (None, 3));
    assert_eq!(due(Cell::Instant(DateTime::UNIX_EPOCH), Cell::Null), (None, 3));
    assert_eq!(due(instant(50), Cell::BeyondTime), (None, 3));
    assert_eq!(due(instant(-86_400 * 2), Cell::Null), (None, 3));
}

#[test]
fn routes_are_mapped_and_the_rest_is_other() {
    let route = |cell: Cell, routes: &BTreeMap<String, String>| {
        let layout = BacklogLayout::new(&columns(), routes).unwrap();
        let rows = [row(Cell::Instant(ago(30)), cell, Cell::Null, Cell::Null, Cell::Int(1))];
        layout.map(&rows, &words(), now(), &mut Notes::default()).unwrap().rows[0]
            .route
            .as_ref()
            .map(ToString::to_string)
    };
    let mut with_rest = routes();
    with_rest.insert("*".into(), "push/all".into());
    for (cell, alone, rest) in [
        (text("r"), Some("email/receipts"), Some("email/receipts")),
        (Cell::Int(7), Some("sms/codes"), Some("sms/codes")),
        (text("unheard"), None, Some("push/all")),
        (text("*"), None, Some("push/all")),
        (Cell::Null, None, Some("push/all")),
    ] {
        assert_eq!(route(cell.clone(), &routes()).as_deref(), alone, "{cell:?}");
        assert_eq!(route(cell.clone(), &with_rest).as_deref(), rest, "{cell:?}");
    }
}

#[test]
fn counts_are_whole_numbers() {
    let counted = |cell| {
        let layout = BacklogLayout::new(&columns(), &routes()).unwrap();
        let rows = [row(Cell::Instant(ago(30)), text("r"), Cell::Null, Cell::Null, cell)];
        layout.map(&rows, &words(), now(), &mut Notes::default()).map(|b| b.rows[0].count)
    };
    assert_eq!(counted(Cell::Int(12)), Ok(12));
    assert_eq!(counted(Cell::Decimal("12".into())), Ok(12));
    for cell in [Cell::Int(-1), Cell::Null, text("12"), Cell::Float(1.5), Cell::Decimal("1.5".into())] {
        assert_eq!(counted(cell).unwrap_err().column, "n");
    }
}

#[test]
fn routes_need_their_column() {
    let columns = PendingColumns { route: None, ..columns() };
    assert!(BacklogLayout::new(&columns, &routes()).is_err());
    let all = BTreeMap::from([("*".to_owned(), "email/receipts".to_owned())]);
    assert!(BacklogLayout::new(&columns, &all).is_ok());
}
