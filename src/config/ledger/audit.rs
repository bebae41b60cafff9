//! How the history of a followed ledger is audited.

use super::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sample of recent notifications is read again at growing ages, and held against what was seen before: nothing of a ledger's history
/// may be rewritten, vanish, or come after the end.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Most notifications in the sample. 0 switches it off.
    #[serde(default = "sample")]
    pub sample: u32,
    /// How long after it was due each is read. Ages above the ledger's `retention` are left out.
    #[serde(default = "ages")]
    pub ages: Vec<Span>,
    /// Whether one idempotency key means one notification. Say false where the keys of two callers may be alike.
    #[serde(default = "yes")]
    pub keys: bool,
}

impl Default for Audit {
    fn default() -> Self {
        Self { sample: sample(), ages: ages(), keys: yes() }
    }
}

fn sample() -> u32 {
    1_000
}
fn ages() -> Vec<Span> {
    [300, 3_600, 21_600, 86_400].map(Span::seconds).to_vec()
}
const fn yes() -> bool {
    true
}
