//! What the readings of a ledger cost its database, by one real refresh.

use std::time::Duration;

/// What one query costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryCost {
    /// Which query: `notifications`, `attempts`, `lookup`, `partition` or `pending`.
    pub query: &'static str,
    /// How many rows one run gave.
    pub rows: u64,
    /// How long it took, with the way there and back.
    pub took: Duration,
    /// How often it runs in an hour.
    pub runs_an_hour: f64,
}

/// What all of them cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Each query that runs again and again. There are none where only canaries are looked up.
    pub queries: Vec<QueryCost>,
    /// Streams whose cost can't be measured: their cursor is an id alone, and a refresh goes on from an id that only the follower knows.
    pub not_measured: Vec<&'static str>,
}

impl Cost {
    /// The rows of an hour, of what was measured.
    pub fn rows_an_hour(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "rows of one run are far below 2^53")]
        self.queries.iter().map(|query| query.rows as f64 * query.runs_an_hour).sum()
    }

    /// The time of an hour that is spent on what was measured.
    pub fn time_an_hour(&self) -> Duration {
        let seconds: f64 =
            self.queries.iter().map(|query| query.took.as_secs_f64() * query.runs_an_hour).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_costs_each_query_as_often_as_it_runs() {
        let query = |rows, millis, runs_an_hour| QueryCost {
            query: "notifications",
            rows,
            took: Duration::from_millis(millis),
            runs_an_hour,
        };
        let queries = vec![query(100, 10, 240.0), query(7, 2_000, 1.0)];
        let cost = Cost { queries, ..Cost::default() };
        assert!((cost.rows_an_hour() - 24_007.0).abs() < 1e-6);
        assert_eq!(cost.time_an_hour(), Duration::from_millis(4_400));
        assert_eq!(Cost::default().time_an_hour(), Duration::ZERO);
    }
}
