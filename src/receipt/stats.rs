//! What became of each request to a receiver: a finite set, and a count of each.

use super::{Admission, token::Refusal};
use hyper::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! arrival_results {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $status:expr;)*) => {
        /// What became of one request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ArrivalResult {
            $($(#[$doc])* $name,)*
        }

        impl ArrivalResult {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word for it in labels, logs and answers.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The status of the answer; nothing where none can be given.
            pub const fn status(self) -> Option<StatusCode> {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

arrival_results! {
    /// A canary arrived and is written down.
    Recorded = "recorded", Some(StatusCode::OK);
    /// It is written down, and was not the first.
    Duplicate = "duplicate", Some(StatusCode::OK);
    /// A message to ourselves arrived.
    SelfReceipt = "self_receipt", Some(StatusCode::OK);
    /// No token of ours stands where one should.
    MalformedToken = "malformed_token", Some(StatusCode::NOT_FOUND);
    /// A token that we did not make.
    Forged = "forged", Some(StatusCode::UNAUTHORIZED);
    /// A token whose time is over.
    Expired = "expired", Some(StatusCode::GONE);
    /// A token of a route, or of a receiver, that does not arrive here.
    WrongRoute = "wrong_route", Some(StatusCode::NOT_FOUND);
    /// The sender has not proven itself.
    BadSender = "bad_sender", Some(StatusCode::UNAUTHORIZED);
    /// There is no such canary (any more).
    UnknownCanary = "unknown_canary", Some(StatusCode::NOT_FOUND);
    /// It can't be written down now; the sender is told to come again.
    Unavailable = "unavailable", Some(StatusCode::SERVICE_UNAVAILABLE);
    /// The body is above the limit.
    TooLarge = "too_large", Some(StatusCode::PAYLOAD_TOO_LARGE);
    /// The request did not come whole within its time.
    TooSlow = "too_slow", Some(StatusCode::REQUEST_TIMEOUT);
    /// Another method than POST.
    Method = "method", Some(StatusCode::METHOD_NOT_ALLOWED);
    /// It is not HTTP, or its head is too large.
    MalformedRequest = "malformed_request", Some(StatusCode::BAD_REQUEST);
    /// The sender hung up before its request was whole.
    Broken = "broken", None;
    /// Its connection was closed to make room: it had been reading the longest while all places were taken.
    CrowdedOut = "crowded_out", None;
}

impl From<Refusal> for ArrivalResult {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed => Self::MalformedToken,
            Refusal::Forged => Self::Forged,
            Refusal::Expired => Self::Expired,
        }
    }
}

impl From<Admission> for ArrivalResult {
    fn from(admission: Admission) -> Self {
        match admission {
            Admission::Recorded => Self::Recorded,
            Admission::Duplicate => Self::Duplicate,
            Admission::UnknownCanary => Self::UnknownCanary,
            Admission::Unavailable => Self::Unavailable,
        }
    }
}

/// Counts of what became of requests, since the start of the process.
#[derive(Debug, Default)]
pub struct ReceiverStats([AtomicU64; ArrivalResult::ALL.len()]);

impl ReceiverStats {
    /// Counts one.
    pub fn count(&self, result: ArrivalResult) {
        self.0[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were of this result.
    pub fn of(&self, result: ArrivalResult) -> u64 {
        self.0[result as usize].load(Ordering::Relaxed)
    }

    /// All results with their counts.
    pub fn all(&self) -> impl Iterator<Item = (ArrivalResult, u64)> + '_ {
        ArrivalResult::ALL.iter().map(|result| (*result, self.of(*result)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_result_has_a_word_and_a_count_of_its_own() {
        let words: BTreeSet<_> = ArrivalResult::ALL.iter().map(|r| r.word()).collect();
        assert_eq!(words.len(), ArrivalResult::ALL.len());
        let stats = ReceiverStats::default();
        for (n, result) in ArrivalResult::ALL.iter().enumerate() {
            (0..=n).for_each(|_| stats.count(*result));
        }
        let counts: Vec<u64> = stats.all().map(|(_, count)| count).collect();
        assert_eq!(counts, (1..=ArrivalResult::ALL.len() as u64).collect::<Vec<_>>());
    }
}
