//! Looking for pending notifications that the streams don't show.

use super::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time between two readings by the pending query, which finds them in all hours at once.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Pending notifications whose rows came behind the cursor of a followed ledger, since they were imported or dated back by more than `overlap`.
/// They are looked for by `pending`, each hour; without it by `partition`, one older hour after the other.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatedBack {
    /// Whether they are looked for. With `false` such a notification is in no figure until an attempt of it comes by.
    #[serde(default = "yes")]
    pub look: bool,
    /// Within what time all of the history is looked through, 10m to 31d; no sooner than one hour of it at each refresh.
    #[serde(default = "one_day")]
    pub within: Span,
}

impl Default for DatedBack {
    fn default() -> Self {
        Self { look: yes(), within: one_day() }
    }
}

impl DatedBack {
    /// How often the pending query is read for it.
    pub fn every(&self) -> Duration {
        self.within.get().min(LONGEST)
    }

    /// After what time the next of so many hours is counted.
    pub fn every_hour_after(&self, hours: u32) -> Duration {
        self.within.get() / hours.max(1)
    }
}

const fn yes() -> bool {
    true
}
fn one_day() -> Span {
    Span::seconds(86_400)
}
