//! The figures, each with how far it may be off by chance.

use crate::world::KEPT;
use std::fmt;

/// How much is simulated.
pub struct Size {
    pub years: f64,
    pub outages: usize,
    pub seed: u64,
}

/// One rule in one world.
pub struct Row {
    pub p0: f64,
    pub false_pages: [Rate; 7],
    pub found: [Times; 3],
    pub pages: [f64; KEPT.len()],
    pub resolved: Times,
    pub again: f64,
}

/// So many a year, with half the width of its 95 % confidence interval.
#[derive(Clone, Copy)]
pub struct Rate {
    a_year: f64,
    off: f64,
}

impl Rate {
    /// Of a count, which is Poisson: the interval is wide enough where the count is 0 too.
    pub fn of(count: u64, years: f64) -> Self {
        let count = count as f64;
        Self { a_year: count / years, off: (1.96 * (count + 0.96).sqrt() + 1.92) / years }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ±{:.2}", self.a_year, self.off)
    }
}

/// Median and 95th percentile in minutes, each with its 95 % confidence interval's half width.
#[derive(Clone, Copy)]
pub struct Times {
    median: (f64, f64),
    most: (f64, f64),
}

impl Times {
    /// Of times; what never came counts as longer than all others.
    pub fn of(times: impl Iterator<Item = Option<f64>>) -> Self {
        let mut times: Vec<f64> = times.map(|time| time.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        let n = times.len() as f64;
        let at = |rank: f64| times.get(rank.clamp(0.0, n - 1.0) as usize).copied().unwrap_or(f64::NAN);
        let percentile = |share: f64| {
            let ranks = 1.96 * (n * share * (1.0 - share)).sqrt();
            let middle = n * share;
            (at(middle), (at(middle + ranks) - at(middle - ranks)) / 2.0)
        };
        Self { median: percentile(0.5), most: percentile(0.95) }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |(minutes, off): (f64, f64)| match minutes {
            m if m.is_infinite() => "never".to_owned(),
            m if off.is_infinite() => format!("{m:.0} or more"),
            m if off < 0.5 => format!("{m:.1}"),
            m => format!("{m:.1} ±{off:.0}"),
        };
        write!(f, "{} / {}", word(self.median), word(self.most))
    }
}

/// The pages of one hour of an outage of one in five, by how long a page is kept.
pub fn kept(rows: &[(String, Row)]) {
    println!("\n### Pages of an hour of an outage of one in five, by `keep_firing`\n");
    let head = KEPT.map(|minutes| if minutes > 0.0 { format!("{minutes}m") } else { "none".to_owned() });
    println!("| canaries | p0 | {} |", head.join(" | "));
    println!("|---|---|{}", "---|".repeat(KEPT.len()));
    for (canaries, row) in rows {
        let pages = row.pages.map(|pages| format!("{pages:.2}"));
        println!("| {canaries} | {} % | {} |", row.p0 * 100.0, pages.join(" | "));
    }
}

pub fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

pub fn head(size: &Size) {
    println!(
        "Simulated: {} years for each figure of false pages, {} outages for each figure of time, seed {}. p1 0.3, bound 5, sustain 5 min.",
        size.years, size.outages, size.seed
    );
    println!(
        "False pages are a year's, ± the 95 % confidence interval: with noise at p0 alone; with 48 blips of 1, 2, 3 and 4 minutes; with correlated\n\
         noise (a fifth of stray failures are followed by another), alone and with 48 blips of 3 minutes. Times are minutes from the beginning of an\n\
         outage to the page, median / 95th percentile (± where chance moves it by half a minute or more), 1 minute to settle included; never: not in\n\
         ten hours. Resolved: minutes after an hour's total outage. Again: the share of such outages with a page more in the 3 hours after it. An hour:\n\
         the pages of one hour of an outage of one in five."
    );
}

/// When canaries go out, in words.
pub fn canaries(interval: i64, confirms: bool) -> String {
    let confirmations = match (interval, confirms) {
        (1, _) => "",
        (_, true) => ", confirmations each minute while there is evidence",
        (_, false) => ", no confirmations",
    };
    format!("every {interval} min{confirmations}")
}

pub fn part(interval: i64, confirms: bool) {
    println!("\n### A canary {}\n", canaries(interval, confirms));
    println!(
        "| rule | p0 | noise | 1 min | 2 min | 3 min | 4 min | correlated | and 3 min | total | half | one in five | resolved | again | an hour |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
}

pub fn print(rule: &str, row: &Row) {
    let rates = row.false_pages.map(|rate| rate.to_string()).join(" | ");
    let found = row.found.map(|times| times.to_string()).join(" | ");
    println!(
        "| {rule} | {} % | {rates} | {found} | {} | {:.1} % | {:.1} |",
        row.p0 * 100.0,
        row.resolved,
        row.again * 100.0,
        row.pages[0]
    );
}
