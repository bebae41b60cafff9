//! A text page of counters: the series of one metric, and when its process started.

use std::{borrow::Cow, collections::BTreeMap};

/// When the process started, by the name that all client libraries give it.
const START: &str = "process_start_time_seconds";

/// Which series are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Their name.
    pub metric: String,
    /// Labels that they must have.
    pub labels: BTreeMap<String, String>,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<'a> {
    /// Its labels.
    pub labels: BTreeMap<&'a str, Cow<'a, str>>,
    /// Its value.
    pub value: f64,
}

/// What was wanted of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<'a> {
    /// The series that have the wanted labels.
    pub series: Vec<Series<'a>>,
    /// When the process started, in seconds since 1970, where the page says so.
    pub start: Option<f64>,
}

impl<'a> Page<'a> {
    /// Reads a page in the text format of Prometheus or in OpenMetrics. Lines of other metrics are not looked into.
    ///
    /// # Errors
    /// When the metric is not there, is no counter, or its lines can't be read.
    pub fn read(text: &'a str, wanted: &Wanted) -> Result<Self, String> {
        let metric = wanted.metric.as_str();
        let (mut page, mut is_there) = (Self { series: Vec::new(), start: None }, false);
        for line in text.lines() {
            let line = line.trim_start();
            if let Some(kind) = line.strip_prefix("# TYPE ").and_then(|of| of.strip_prefix(metric)) {
                match kind.trim() {
                    "counter" => is_there = true,
                    kind @ ("gauge" | "histogram" | "summary") => {
                        return Err(format!("`{metric}` is a {kind} there, and a counter is wanted"));
                    }
                    _ => {}
                }
                continue;
            }
            let name = line.split(|c: char| c == '{' || c.is_whitespace()).next().unwrap_or_default();
            if name == metric {
                is_there = true;
                let series = series(&line[name.len()..])
                    .ok_or_else(|| format!("a line of `{metric}` can't be read"))?;
                if !series.value.is_finite() || series.value < 0.0 {
                    return Err(format!("a line of `{metric}` has a value that is no count"));
                }
                if series.has_time {
                    return Err(format!(
                        "the lines of `{metric}` have times of their own: it shows what others saw before"
                    ));
                }
                let series = Series { labels: series.labels, value: series.value };
                let fits = |(name, value): (&String, &String)| {
                    series.labels.get(name.as_str()).map_or("", |seen| seen.as_ref()) == value
                };
                if wanted.labels.iter().all(fits) {
                    page.series.push(series);
                }
            } else if name == START {
                page.start =
                    series(&line[name.len()..]).map(|series| series.value).filter(|at| at.is_finite());
            }
        }
        if is_there { Ok(page) } else { Err(format!("it has no `{metric}`")) }
    }
}

struct Line<'a> {
    labels: BTreeMap<&'a str, Cow<'a, str>>,
    value: f64,
    has_time: bool,
}

/// What follows the name on a line.
fn series(rest: &str) -> Option<Line<'_>> {
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (BTreeMap::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value = words.next()?.parse().ok()?;
    // An exemplar is behind a `#`.
    let has_time = words.next().is_some_and(|word| !word.starts_with('#'));
    Some(Line { labels, value, has_time })
}

/// The labels up to the closing brace, and what is behind it.
fn labels(mut rest: &str) -> Option<(BTreeMap<&str, Cow<'_, str>>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(end) = rest.strip_prefix('}') {
            return Some((labels, end));
        }
        let (name, quoted) = rest.split_once('=')?;
        let inside = quoted.trim_start().strip_prefix('"')?;
        let (value, behind) = quoted_text(inside)?;
        labels.insert(name.trim(), value);
        rest = behind.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// The text up to the closing quote, and what is behind it.
fn quoted_text(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut unescaped: Option<String> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let value = unescaped.map_or(Cow::Borrowed(&text[..at]), Cow::Owned);
                return Some((value, &text[at + 1..]));
            }
            '\\' => {
                let (_, escaped) = chars.next()?;
                let value = unescaped.get_or_insert_with(|| text[..at].to_owned());
                value.push(if escaped == 'n' { '\n' } else { escaped });
            }
            c => {
                if let Some(value) = &mut unescaped {
                    value.push(c);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(labels: &[(&str, &str)]) -> Wanted {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Wanted { metric: "accepted_total".into(), labels }
    }

    const PAGE: &str = r#"# HELP accepted_total What was accepted.
# TYPE accepted_total counter
accepted_total{route="a\\b\"c\nd",result="ok"} 12
accepted_total{ result="ok" , route = "}, x=" , } 3e2 # {trace_id="1"} 1.0 1.8e9
accepted_total{route="a",result="refused"} 7
accepted_total 1
accepted_total_created{route="a"} 1.8e9
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.80000000012e+09
something else { that is no metric
"#;

    #[test]
    fn the_wanted_series_are_read_and_no_others() {
        let page = Page::read(PAGE, &wanted(&[("result", "ok")])).unwrap();
        let seen: Vec<_> =
            page.series.iter().map(|series| (&*series.labels["route"], series.value)).collect();
        assert_eq!(seen, [("a\\b\"c\nd", 12.0), ("}, x=", 300.0)]);
        assert_eq!(page.start, Some(1_800_000_000.12));
        assert_eq!(Page::read(PAGE, &wanted(&[])).unwrap().series.len(), 4);
        // A label that isn't there is one that is empty.
        assert_eq!(Page::read(PAGE, &wanted(&[("result", "")])).unwrap().series.len(), 1);
        let bare = Page::read("# TYPE accepted_total counter\n", &wanted(&[])).unwrap();
        assert_eq!((bare.series.len(), bare.start), (0, None), "nothing was accepted yet");
    }

    #[test]
    fn what_is_no_count_of_now_is_refused_with_the_reason() {
        for (page, says) in [
            ("", "has no `accepted_total`"),
            ("accepted_totals 1\n", "has no `accepted_total`"),
            ("# TYPE accepted_total gauge\naccepted_total 1\n", "is a gauge"),
            ("accepted_total 1 1800000000000\n", "times of their own"),
            ("accepted_total NaN\n", "is no count"),
            ("accepted_total -1\n", "is no count"),
            ("accepted_total{route=\"a} 1\n", "can't be read"),
            ("accepted_total{route} 1\n", "can't be read"),
            ("accepted_total\n", "can't be read"),
        ] {
            let error = Page::read(page, &wanted(&[])).unwrap_err();
            assert!(error.contains(says), "{page:?}: {error}");
        }
        let other = Page::read("# TYPE accepted_total_seconds gauge\naccepted_total 1\n", &wanted(&[]));
        assert_eq!(other.unwrap().series.len(), 1);
    }

    proptest! {
        #[test]
        fn no_page_breaks_the_reading(page in r#"(accepted_total[{}"\\,= a-c0-9.\n#]{0,40}|.{0,20}\n){0,6}"#) {
            let _ = Page::read(&page, &wanted(&[]));
        }

        #[test]
        fn any_label_is_read_as_it_was_written(value in any::<String>()) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            prop_assume!(!value.contains('\r'));
            let text = format!("accepted_total{{route=\"{escaped}\"}} 1\n");
            let page = Page::read(&text, &wanted(&[])).unwrap();
            prop_assert_eq!(&page.series[0].labels["route"], &value);
        }
    }
}
