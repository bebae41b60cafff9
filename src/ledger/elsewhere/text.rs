//! A counter on a text page of one process.

use super::{
    ElsewhereError,
    page::{Page, Wanted},
    web::Web,
};
use crate::{
    clock,
    config::ledger::PrometheusText,
    domain::{elsewhere::Sample, flow::rows::RouteNo},
    ledger::{LedgerError, flow::RouteField},
};
use chrono::DateTime;
use reqwest::Url;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A counter on a text page.
pub struct TextPage {
    web: Web,
    url: Url,
    wanted: Wanted,
    route_label: Option<String>,
    words: RouteField,
    made_at: Instant,
}

impl TextPage {
    pub(super) fn new(
        config: &PrometheusText,
        words: RouteField,
        timeout: Duration,
    ) -> Result<Self, LedgerError> {
        let fault = |reason: String| LedgerError::Configuration { part: "accepted_elsewhere", reason };
        Ok(Self {
            web: Web::new(
                "the page of accepted_elsewhere",
                config.authorization.as_ref(),
                config.ca_file.as_deref(),
                timeout,
            )?,
            url: Url::parse(&config.url).map_err(|error| fault(format!("`url`: {error}")))?,
            wanted: Wanted { metric: config.metric.clone(), labels: config.labels.clone() },
            route_label: config.route_label.clone(),
            words,
            made_at: Instant::now(),
        })
    }

    /// Looks at the counter now. A route of which nothing was accepted yet is 0.
    ///
    /// # Errors
    /// When the page can't be read, or has no such counter.
    pub async fn sample(&self) -> Result<Sample<RouteNo>, ElsewhereError> {
        let (began, uptime) = (clock::now(), self.made_at.elapsed());
        let (status, text) = self.web.get(self.url.clone()).await?;
        let ended = clock::now();
        if status != 200 {
            return Err(self.web.unusable(format!("it answers with {status}")));
        }
        let page = Page::read(&text, &self.wanted).map_err(|reason| self.web.unusable(reason))?;
        let mut sums: BTreeMap<RouteNo, f64> =
            self.words.all().into_iter().map(|route| (route, 0.0)).collect();
        for series in &page.series {
            let word = self.route_label.as_ref().and_then(|label| series.labels.get(label.as_str()));
            *sums.entry(self.words.of_word(word.map(AsRef::as_ref))).or_default() += series.value;
        }
        #[allow(clippy::cast_possible_truncation, reason = "a time; what is beyond all calendars is none")]
        let process = page.start.and_then(|at| DateTime::from_timestamp_millis((at * 1_000.0) as i64));
        Ok(Sample { began, ended, uptime, process, sums })
    }
}
