//! What time it is for whoever closes, gives up or forgets for good: a follower, and the janitor. Any of the clocks may be wrong, and what is closed, given up or forgotten too early can't be made good.

use chrono::{DateTime, TimeDelta, Utc};
use std::time::Instant;

/// How much further than the monotonic clock a reading may be from the one before it: clocks are set right by so much now and then.
const TOLERANCE: TimeDelta = TimeDelta::seconds(60);

/// What time it surely is, by our clock and by the database's: rows carry times of the one, the other, or a third, and a clock that is ahead
/// would take a row for old before its neighbours can be seen. A clock that is behind only has more read again.
pub fn surely(ours: DateTime<Utc>, database: DateTime<Utc>) -> DateTime<Utc> {
    ours.min(database)
}

/// How time goes by, over all readings of one process: never faster than the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passing {
    /// The moment of the last reading, and what time it was at most.
    latest: Option<(Instant, DateTime<Utc>)>,
}

/// A reading of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// What time it is.
    pub at: DateTime<Utc>,
    /// How far the clocks have jumped ahead of that, if they have.
    pub jumped: Option<TimeDelta>,
}

impl Passing {
    /// Takes what the clocks say at a moment. From a jump ahead on, time goes by as the monotonic clock says, until they agree again: it is the
    /// next process that takes the clocks at their word. The first reading is taken as it is.
    pub fn read(&mut self, moment: Instant, said: DateTime<Utc>) -> Now {
        let most = self.latest.map_or(said, |(before, at)| at + moment.saturating_duration_since(before));
        let ahead = said - most;
        let is_jump = ahead > TOLERANCE;
        let at = if is_jump { most } else { said };
        self.latest = Some((moment, most.max(at)));
        Now { at, jumped: is_jump.then_some(ahead) }
    }
}
