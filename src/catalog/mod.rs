//! Every metric family, defined once: the exporter, the rules, the dashboards and the docs are made from this.

pub mod bounds;
pub mod families;
pub mod labels;
pub mod reference;

use crate::domain::pending::AGE_BOUNDS_SECONDS;

pub use families::FAMILIES;
pub use labels::{Label, Values};

/// What kind of values a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A count of what this process did; it starts at 0 with the process.
    Counter,
    /// Counts by bound, with a sum.
    Histogram,
}

impl Kind {
    /// The word for it in the exposition format.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Seconds since 1970.
    Timestamp,
    /// A number of things.
    Count,
    /// A share between 0 and 1.
    Ratio,
    /// 0 or 1.
    Flag,
    /// Powers of ten.
    PowersOfTen,
    /// A number that only says same or different.
    Hash,
    /// Always 1; the labels carry the facts.
    Info,
}

impl Unit {
    /// The words for it in the docs.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Timestamp => "seconds since 1970",
            Self::Count => "count",
            Self::Ratio => "0 to 1",
            Self::Flag => "0 or 1",
            Self::PowersOfTen => "powers of ten",
            Self::Hash => "same or different",
            Self::Info => "always 1",
        }
    }
}

/// One metric family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name: a contract.
    pub name: &'static str,
    /// What kind of values it has.
    pub kind: Kind,
    /// Its labels, in the order in which values are given.
    pub labels: &'static [Label],
    /// What it is measured in.
    pub unit: Unit,
    /// What it says, in one sentence.
    pub help: &'static str,
    /// When a series of it is absent. Nothing: every series is there from the first scrape.
    pub absent_when: Option<&'static str>,
}

impl Family {
    /// How many series of it one route has at one location, when all that may be absent is there.
    pub fn series_per_route(&self) -> usize {
        if !self.labels.contains(&Label::Route) {
            return 0;
        }
        let values = self.labels.iter().map(|label| match label.values() {
            // A route has one of these words at a time.
            Values::Words(_)
                if matches!(
                    label,
                    Label::Channel | Label::VolumeClass | Label::StoppedAt | Label::OutsideVerdict
                ) =>
            {
                1
            }
            Values::Words(words) => words.len(),
            Values::Named(_) => 1,
        });
        // A histogram has a bucket beyond all bounds, a sum and a count besides those of its bounds.
        let each = match (self.kind, self.labels.contains(&Label::Stage)) {
            (Kind::Histogram, true) => bounds::STAGE_BOUNDS + 3,
            (Kind::Histogram, false) => AGE_BOUNDS_SECONDS.len() + 3,
            _ => 1,
        };
        values.product::<usize>() * each
    }
}

/// The family of this name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().copied().find(|f| f.name == name)
}

/// The value of `delivery_monitor_config_hash` for a configuration's hash: its low 48 bits, which a sample holds exactly.
pub fn hash_value(hash: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "48 bits fit the 53 of a sample's mantissa")]
    let value = (hash & 0xffff_ffff_ffff) as f64;
    value
}
