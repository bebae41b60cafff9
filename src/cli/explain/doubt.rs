//! What a submission of unknown fate came to, in words.

use crate::domain::evidence::{AmbiguityReason, Submission, SubmissionResult};

/// What came of a submission that nobody knows the fate of; nothing where its fate is known.
pub fn phrase(submission: &Submission) -> Option<String> {
    let SubmissionResult::Ambiguous { reason } = submission.result else { return None };
    let status = submission.status;
    Some(match (reason, status) {
        (AmbiguityReason::Timeout, _) => "no answer came in time".to_owned(),
        (AmbiguityReason::Broken, _) => "the connection broke before an answer".to_owned(),
        (AmbiguityReason::Status, Some(status)) => format!("it answered {status}"),
        (AmbiguityReason::Status, None) => "it answered with a status of no list".to_owned(),
        (AmbiguityReason::AskLedger, Some(status)) => {
            format!("it answered {status}, by which the ledger is to be asked")
        }
        (AmbiguityReason::AskLedger, None) => "it answered that the ledger is to be asked".to_owned(),
        (AmbiguityReason::Answer, Some(status)) => {
            format!("it answered {status}, and the answer could not be read as configured")
        }
        (AmbiguityReason::Answer, None) => "its answer could not be read as configured".to_owned(),
        (AmbiguityReason::TakenOver, _) => {
            "the process that sent it is gone, and wrote down no answer".to_owned()
        }
    })
}

/// What all submissions of unknown fate came to, in the order in which each was first met, and how often.
pub fn all<'a>(submissions: impl IntoIterator<Item = &'a Submission>) -> String {
    let mut said: Vec<(String, usize)> = Vec::new();
    for phrase in submissions.into_iter().filter_map(phrase) {
        match said.iter_mut().find(|(known, _)| *known == phrase) {
            Some((_, times)) => *times += 1,
            None => said.push((phrase, 1)),
        }
    }
    let said: Vec<String> =
        said.into_iter().map(|(phrase, times)| format!("{phrase}{}", often(times))).collect();
    said.join("; ")
}

fn often(times: usize) -> String {
    match times {
        0 | 1 => String::new(),
        2 => ", twice".to_owned(),
        3 => ", three times".to_owned(),
        more => format!(", {more} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, TimeDelta, Utc};

    fn submission(second: i64, status: Option<u16>, reason: AmbiguityReason) -> Submission {
        let at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(second);
        Submission {
            started_at: at,
            ended_at: at,
            status,
            way: None,
            ledger: None,
            result: SubmissionResult::Ambiguous { reason },
        }
    }

    #[test]
    fn each_answer_is_said_once_with_how_often_it_came() {
        let (status, timeout) = (AmbiguityReason::Status, AmbiguityReason::Timeout);
        let of = |submissions: &[Submission]| all(submissions);
        let failed = |second| submission(second, Some(500), status);
        assert_eq!(of(&[failed(1), failed(2), failed(3)]), "it answered 500, three times");
        let mixed = [failed(1), submission(2, None, timeout), failed(3), submission(4, Some(502), status)];
        assert_eq!(of(&mixed), "it answered 500, twice; no answer came in time; it answered 502");
        assert_eq!(of(&[]), "");
    }
}
