//! The failure evidence of a route at one location, judgement by judgement, as it was known at each moment.

use crate::domain::{
    failure_evidence::{Question, Stream, Weights},
    route::CanaryId,
    verdict::{ExpectedEnd, Verdict},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::VecDeque;

/// A canary's place in the order of evidence.
pub type Place = (DateTime<Utc>, CanaryId);

/// A judgement: a settlement or a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// When it was given.
    pub at: DateTime<Utc>,
    /// Of which canary.
    pub place: Place,
    /// What it is.
    pub verdict: Verdict,
    /// The end that was expected of the canary.
    pub expected: ExpectedEnd,
}

/// A canary, and the evidence after it, by question.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    verdict: Verdict,
    expected: ExpectedEnd,
    after: [Stream; 2],
}

/// The evidence by one way of weighing it.
#[derive(Clone, Debug)]
pub struct Replay {
    weights: Weights,
    /// How long a canary can still be judged anew.
    corrected_for: TimeDelta,
    kept: VecDeque<Entry>,
    /// The evidence before what is kept, and the last canary in it.
    before: [Stream; 2],
    gone: Option<Place>,
    too_late: u32,
}

impl Replay {
    /// Nothing is known yet. Canaries that are older than the newest by more than `corrected_for` are folded for good, so that memory
    /// stays within what is sent in that time.
    pub fn new(weights: Weights, corrected_for: TimeDelta) -> Self {
        Self {
            weights,
            corrected_for,
            kept: VecDeque::new(),
            before: [Stream::default(); 2],
            gone: None,
            too_late: 0,
        }
    }

    /// Takes the next judgement. One of a canary that is folded for good is left out, and counted.
    pub fn take(&mut self, judged: &Judged) {
        if self.gone.is_some_and(|gone| judged.place <= gone) {
            self.too_late += 1;
            return;
        }
        let place = match self.kept.binary_search_by(|entry| entry.place.cmp(&judged.place)) {
            Ok(place) => place,
            Err(place) => {
                let fresh = Entry {
                    place: judged.place,
                    verdict: judged.verdict,
                    expected: judged.expected,
                    after: self.before,
                };
                self.kept.insert(place, fresh);
                place
            }
        };
        self.kept[place].verdict = judged.verdict;
        self.fold_from(place);
        self.forget();
    }

    fn fold_from(&mut self, first: usize) {
        let mut state = first.checked_sub(1).map_or(self.before, |last| self.kept[last].after);
        for entry in self.kept.range_mut(first..) {
            for (question, stream) in Question::ALL.into_iter().zip(&mut state) {
                if let Some(failed) = question.vote(entry.verdict, entry.expected) {
                    stream.observe(&self.weights, entry.place.0, failed);
                }
            }
            entry.after = state;
        }
    }

    fn forget(&mut self) {
        let Some(newest) = self.kept.back().map(|entry| entry.place.0) else { return };
        while let Some(oldest) = self.kept.front().filter(|entry| newest - entry.place.0 > self.corrected_for)
        {
            (self.before, self.gone) = (oldest.after, Some(oldest.place));
            self.kept.pop_front();
        }
    }

    /// The evidence on a question, by all that has been judged.
    pub fn stream(&self, question: Question) -> Stream {
        let state = self.kept.back().map_or(self.before, |entry| entry.after);
        state[usize::from(question == Question::InTime)]
    }

    /// Whether the evidence on a question is at its bound.
    pub fn is_at_bound(&self, question: Question) -> bool {
        self.stream(question).is_sustained(&self.weights)
    }

    /// How many judgements were left out, because their canaries were folded for good.
    pub const fn too_late(&self) -> u32 {
        self.too_late
    }
}
