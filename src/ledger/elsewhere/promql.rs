//! A query that a Prometheus answers.

use super::{ElsewhereError, web::Web};
use crate::{
    config::ledger::{
        Promql,
        promql::{Piece, pieces},
    },
    domain::flow::rows::RouteNo,
    ledger::{LedgerError, flow::RouteField},
};
use chrono::{DateTime, Utc};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// A Prometheus, and what it is asked.
pub struct Prometheus {
    web: Web,
    url: Url,
    query: String,
    route_label: Option<String>,
}

/// The answer of the query API.
#[derive(Deserialize)]
struct Answer {
    status: String,
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: Value,
}

/// A time, and a number as text.
type Point = (f64, String);

#[derive(Deserialize)]
struct Element {
    metric: BTreeMap<String, String>,
    value: Point,
}

impl Prometheus {
    pub(super) fn new(config: &Promql, timeout: Duration) -> Result<Self, LedgerError> {
        let fault = |reason: String| LedgerError::Configuration { part: "accepted_elsewhere", reason };
        let url = format!("{}/api/v1/query", config.url.trim_end_matches('/'));
        Ok(Self {
            web: Web::new(
                "the Prometheus of accepted_elsewhere",
                config.authorization.as_ref(),
                config.ca_file.as_deref(),
                timeout,
            )?,
            url: Url::parse(&url).map_err(|error| fault(format!("`url`: {error}")))?,
            query: config.query.clone(),
            route_label: config.route_label.clone(),
        })
    }

    /// What the query says of an interval, by route: at least so many. What it gives no number for is not in it.
    pub(super) async fn count(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        words: &RouteField,
    ) -> Result<BTreeMap<RouteNo, u64>, ElsewhereError> {
        let mut url = self.url.clone();
        let query = written(&self.query, from, until);
        url.query_pairs_mut()
            .append_pair("query", &query)
            .append_pair("time", &until.timestamp().to_string());
        let (status, text) = self.web.get(url).await?;
        let foreign =
            |_| self.web.unusable(format!("it answers with {status}, and not as a Prometheus does"));
        let answer: Answer = serde_json::from_str(&text).map_err(foreign)?;
        if answer.status != "success" {
            let reason = answer.error.unwrap_or_else(|| format!("it answers with {status}"));
            return Err(self.web.unusable(shortened(&reason)));
        }
        if let Some(warning) = answer.warnings.first() {
            // It may have left something out.
            return Err(self.web.unusable(format!("it warns: {}", shortened(warning))));
        }
        let word = |mut metric: BTreeMap<String, String>| metric.remove(self.route_label.as_ref()?);
        let counts: Vec<(Option<String>, String)> = match answer.data {
            Some(Data { kind, result }) if kind == "vector" => {
                let elements: Vec<Element> = serde_json::from_value(result).map_err(foreign)?;
                elements.into_iter().map(|Element { metric, value }| (word(metric), value.1)).collect()
            }
            Some(Data { kind, result }) if kind == "scalar" => {
                let (_, value): Point = serde_json::from_value(result).map_err(foreign)?;
                vec![(None, value)]
            }
            _ => {
                let reason = "the query gives no vector and no scalar: it must give one number for a route";
                return Err(self.web.unusable(reason));
            }
        };
        let mut sums: BTreeMap<RouteNo, Option<f64>> = BTreeMap::new();
        for (word, value) in counts {
            let value: f64 = value.parse().map_err(|_| self.web.unusable("a value is no number"))?;
            let sum = sums.entry(words.of_word(word.as_deref())).or_insert(Some(0.0));
            // A counter that fell, and a division by nothing, say nothing.
            *sum = sum.filter(|_| value.is_finite() && value >= 0.0).map(|sum| sum + value);
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, and never negative"
        )]
        let whole = |sum: f64| sum.floor() as u64;
        Ok(sums.into_iter().filter_map(|(route, sum)| Some((route, whole(sum?)))).collect())
    }
}

/// The query of an interval.
fn written(query: &str, from: DateTime<Utc>, until: DateTime<Utc>) -> String {
    let piece = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Placeholder("from") => from.timestamp().to_string(),
        Piece::Placeholder("until") => until.timestamp().to_string(),
        Piece::Placeholder("range") => format!("{}s", (until - from).num_seconds()),
        Piece::Placeholder(name) => format!(":{name}"),
    };
    pieces(query).into_iter().map(piece).collect()
}

/// What a server says, as much of it as a log line bears.
fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_written_into_the_query() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let query = "sum by (route) (x @ :until - x @ :from) or increase(x[:range] @ :until)";
        assert_eq!(
            written(query, at(1_800_000_000), at(1_800_003_480)),
            "sum by (route) (x @ 1800003480 - x @ 1800000000) or increase(x[3480s] @ 1800003480)"
        );
    }
}
