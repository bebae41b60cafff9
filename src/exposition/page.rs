//! Families being filled for one scrape, each by its entry in the catalog.

use crate::catalog::{Family, Kind};
use chrono::{DateTime, Utc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use std::collections::BTreeMap;

/// The families of one scrape.
#[derive(Default)]
pub struct Page(BTreeMap<&'static str, MetricFamily>);

impl Page {
    /// Adds a sample of a gauge or a counter. `values` are those of the family's labels, in their order.
    pub fn set(&mut self, family: &'static Family, values: &[&str], value: f64) {
        let mut metric = labelled(family, values);
        match family.kind {
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Kind::Histogram => {
                debug_assert!(false, "{} is a histogram", family.name);
                return;
            }
        }
        self.push(family, metric);
    }

    /// Adds a count.
    pub fn count(&mut self, family: &'static Family, values: &[&str], count: u64) {
        #[allow(clippy::cast_precision_loss, reason = "a sample is a double; counts stay far below 2^53")]
        self.set(family, values, count as f64);
    }

    /// Adds a yes or no.
    pub fn flag(&mut self, family: &'static Family, values: &[&str], holds: bool) {
        self.set(family, values, f64::from(u8::from(holds)));
    }

    /// Adds a time. A time that never came is absent.
    pub fn time(&mut self, family: &'static Family, values: &[&str], at: Option<DateTime<Utc>>) {
        if let Some(at) = at {
            #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 stay below 2^53")]
            self.set(family, values, at.timestamp_millis() as f64 / 1e3);
        }
    }

    /// Adds a histogram of finite bounds, each with how many fall in its bucket (not cumulated), and one count beyond them all.
    ///
    /// The bucket without a bound is the encoder's: an explicit one would be written as `inf`.
    pub fn histogram(
        &mut self,
        family: &'static Family,
        values: &[&str],
        bounds: impl IntoIterator<Item = f64>,
        counts: &[u64],
        sum: f64,
    ) {
        debug_assert_eq!(family.kind, Kind::Histogram, "{} is no histogram", family.name);
        let mut below = 0;
        let buckets = bounds.into_iter().zip(counts).map(|(bound, count)| {
            below += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(below);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(counts.iter().sum());
        histogram.set_sample_sum(sum);
        let mut metric = labelled(family, values);
        metric.set_histogram(histogram);
        self.push(family, metric);
    }

    /// The families that have samples.
    pub fn into_families(self) -> Vec<MetricFamily> {
        self.0.into_values().collect()
    }

    fn push(&mut self, family: &'static Family, metric: Metric) {
        let entry = self.0.entry(family.name).or_insert_with(|| {
            let mut entry = MetricFamily::default();
            entry.set_name(family.name.into());
            entry.set_help(family.help.into());
            entry.set_field_type(match family.kind {
                Kind::Gauge => MetricType::GAUGE,
                Kind::Counter => MetricType::COUNTER,
                Kind::Histogram => MetricType::HISTOGRAM,
            });
            entry
        });
        entry.mut_metric().push(metric);
    }
}

fn labelled(family: &Family, values: &[&str]) -> Metric {
    debug_assert_eq!(family.labels.len(), values.len(), "labels of {}", family.name);
    let pairs = family.labels.iter().zip(values).map(|(label, value)| {
        let mut pair = LabelPair::default();
        pair.set_name(label.name().into());
        pair.set_value((*value).into());
        pair
    });
    let mut metric = Metric::default();
    metric.set_label(pairs.collect());
    metric
}
