use super::*;
use proptest::{collection::vec, prelude::*};

/// How late a row may become visible, in seconds.
const OVERLAP: i64 = 60;

/// The first second.
fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).expect("an instant")
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: i64,
    made: i64,
}

impl Timed for Row {
    fn time(&self) -> DateTime<Utc> {
        at(self.made)
    }
}

/// A table whose rows have their times by the service's clock, which is right.
struct Table {
    /// Each row, and when it becomes visible.
    rows: Vec<(Row, i64)>,
    page: usize,
    /// What time it is, by our clock and by the database's, less the right one.
    second: i64,
    ours: i64,
    database: i64,
}

fn place(row: &Row) -> Position {
    let at = at(row.made).format("z%Y-%m-%dT%H:%M:%S%.9f").to_string();
    let text = serde_json::to_string(&[at, format!("i{}", row.id)]).expect("it is text");
    Position::from_text(&text).expect("a place")
}

#[async_trait]
impl Pages<Row> for Table {
    async fn page(&self, after: Option<&Position>) -> Result<Page<Row>, LedgerError> {
        let mut seen: Vec<&Row> =
            self.rows.iter().filter(|(_, visible)| *visible <= self.second).map(|(row, _)| row).collect();
        seen.sort_by_key(|row| (row.made, row.id));
        let first = after.map_or(0, |after| {
            let text = after.to_text();
            let key = |row: &Row| (row.made, row.id);
            let known =
                self.rows.iter().find(|(row, _)| place(row).to_text() == text).expect("a row of ours");
            seen.partition_point(|row| key(row) <= key(&known.0))
        });
        let rest = &seen[first..];
        let rows = rest.iter().take(self.page).map(|row| Seen {
            position: place(row),
            at: Some(at(row.made)),
            row: Some((*row).clone()),
        });
        Ok(Page {
            rows: rows.collect(),
            is_full: rest.len() > self.page,
            began_at: at(self.second + self.ours),
            database_now: at(self.second + self.database),
            lag: Duration::ZERO,
            refused: 0,
        })
    }
}

/// Each row, when it was made, and how much later it becomes visible.
fn rows() -> impl Strategy<Value = Vec<(i64, i64)>> {
    vec((0_i64..900, prop_oneof![3 => 0_i64..3, 2 => 0_i64..=OVERLAP]), 1..40)
}

/// Passes over a table: after so long, with our clock off by so much.
async fn closed(
    rows: &[(i64, i64)],
    passes: &[(i64, i64)],
    database: i64,
    page: usize,
) -> Result<Vec<i64>, LedgerError> {
    let rows = (0..).zip(rows).map(|(id, (made, late))| (Row { id, made: *made }, made + late)).collect();
    let mut table = Table { rows, page, second: 0, ours: 0, database };
    let (mut watermark, mut closed) = (Watermark::default(), Vec::new());
    // Later, page by page.
    let later = std::iter::once((2_000, 0)).chain(std::iter::repeat_n((1, 0), table.rows.len()));
    for (gap, ours) in passes.iter().copied().chain(later) {
        (table.second, table.ours) = (table.second + gap, ours);
        let gathered = watermark.gather(TimeDelta::seconds(OVERLAP), None, &table).await?;
        closed.extend(gathered.rows.iter().filter(|(_, is_closed)| *is_closed).map(|(row, _)| row.id));
        watermark = gathered.watermark;
    }
    Ok(closed)
}

proptest! {
    /// The database's clock may be ahead or behind for good, and ours at any time: each row is closed once, as long as one of the two isn't ahead.
    #[test]
    fn whichever_clock_is_wrong_each_row_is_closed_once(
        rows in rows(),
        passes in vec((0_i64..90, prop_oneof![4 => Just(0_i64), 1 => Just(36_000_i64), 1 => Just(-3_600_i64)]), 0..40),
        database in prop_oneof![Just(0_i64), Just(120), Just(-120), -300_i64..300],
        page in prop_oneof![Just(1_000_usize), 1_usize..6],
    ) {
        let in_turn = |(gap, ours): &(i64, i64)| (*gap, if database > 0 { (*ours).min(0) } else { *ours });
        let passes: Vec<(i64, i64)> = passes.iter().map(in_turn).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut closed = runtime.block_on(closed(&rows, &passes, database, page)).expect("it is read");
        closed.sort_unstable();
        let all: Vec<i64> = (0..).take(rows.len()).collect();
        prop_assert_eq!(closed, all);
    }
}

/// As it was found: times by the service, the database two minutes fast, a row that commits twenty seconds late, and its neighbour, read meanwhile.
#[tokio::test]
async fn a_database_clock_that_is_fast_passes_by_no_row() {
    let (late, neighbour) = ((0, 20), (5, 0));
    let closed = closed(&[late, neighbour], &[(6, 0), (20, 0)], 120, 1_000).await.expect("it is read");
    assert_eq!(closed, [0, 1]);
}
