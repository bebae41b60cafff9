//! Two lists of pages of one past, held against each other.

use super::pages::Page;
use chrono::{DateTime, TimeDelta, Utc};

/// What becomes of a page by other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It comes at the same moment.
    Same,
    /// It comes, and did not.
    New,
    /// It does not come, and did.
    Gone,
    /// It comes earlier, by so much.
    Earlier(TimeDelta),
    /// It comes later, by so much.
    Later(TimeDelta),
}

impl Change {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Earlier(_) => "earlier",
            Self::Later(_) => "later",
        }
    }

    /// By how much it moves; nothing where it doesn't.
    pub const fn by(self) -> Option<TimeDelta> {
        match self {
            Self::Earlier(by) | Self::Later(by) => Some(by),
            Self::Same | Self::New | Self::Gone => None,
        }
    }
}

/// A page by the settings in force, the one by those that are tried, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// By the settings in force.
    pub in_force: Option<Page>,
    /// By those that are tried.
    pub tried: Option<Page>,
    /// What became of it.
    pub change: Change,
}

impl Difference {
    fn of(in_force: Option<Page>, tried: Option<Page>) -> Self {
        let change = match (&in_force, &tried) {
            (Some(old), Some(new)) if new.from < old.from => Change::Earlier(old.from - new.from),
            (Some(old), Some(new)) if new.from > old.from => Change::Later(new.from - old.from),
            (Some(_), Some(_)) => Change::Same,
            (None, _) => Change::New,
            (Some(_), None) => Change::Gone,
        };
        Self { in_force, tried, change }
    }

    /// The page that it is about: that of the settings in force before the other.
    pub fn page(&self) -> Option<&Page> {
        self.in_force.as_ref().or(self.tried.as_ref())
    }

    fn begins(&self) -> Option<DateTime<Utc>> {
        let all = [&self.in_force, &self.tried];
        all.into_iter().flatten().map(|page| page.from).min()
    }
}

fn overlap(one: &Page, other: &Page) -> bool {
    let ends_after = |page: &Page, at| page.until.is_none_or(|until| until > at);
    one.route == other.route
        && one.alert == other.alert
        && ends_after(one, other.from)
        && ends_after(other, one.from)
}

/// Holds the pages by the settings in force against those by others, by time. Two are the same page where they overlap; one that becomes
/// two, or two that become one, are the first of them and the rest.
pub fn compare(in_force: Vec<Page>, tried: Vec<Page>) -> Vec<Difference> {
    let mut tried: Vec<Option<Page>> = tried.into_iter().map(Some).collect();
    let mut found: Vec<Difference> = Vec::new();
    for old in in_force {
        let same = tried.iter().position(|new| matches!(new, Some(new) if overlap(&old, new)));
        let new = same.and_then(|place| tried[place].take());
        found.push(Difference::of(Some(old), new));
    }
    found.extend(tried.into_iter().flatten().map(|new| Difference::of(None, Some(new))));
    found.sort_by_key(Difference::begins);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alerts::catalog::Severity,
        domain::route::{Channel, RouteName},
    };

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn page(from: i64, until: Option<i64>) -> Page {
        Page {
            route: RouteName::new(Channel::Webhook, "receipts"),
            alert: "CanaryDeliveryFailing",
            severity: Severity::Page,
            from: at(from),
            until: until.map(at),
        }
    }

    fn said(in_force: &[(i64, Option<i64>)], tried: &[(i64, Option<i64>)]) -> Vec<(i64, &'static str, i64)> {
        let pages =
            |all: &[(i64, Option<i64>)]| all.iter().map(|(from, until)| page(*from, *until)).collect();
        let minute = |at: DateTime<Utc>| at.timestamp() / 60;
        compare(pages(in_force), pages(tried))
            .iter()
            .map(|found| {
                let by = found.change.by().map_or(0, |by| by.num_minutes());
                (found.begins().map_or(0, minute), found.change.word(), by)
            })
            .collect()
    }

    #[test]
    fn each_page_is_found_once_and_what_became_of_it_is_said() {
        assert_eq!(said(&[], &[]), []);
        assert_eq!(said(&[(10, Some(20))], &[(10, Some(25))]), [(10, "same", 0)]);
        assert_eq!(said(&[(10, Some(20))], &[(8, Some(20))]), [(8, "earlier", 2)]);
        assert_eq!(said(&[(10, None)], &[(15, None)]), [(10, "later", 5)]);
        assert_eq!(said(&[(10, Some(20))], &[(20, Some(30))]), [(10, "gone", 0), (20, "new", 0)]);
        assert_eq!(
            said(&[(10, Some(20)), (25, Some(30))], &[(9, Some(40))]),
            [(9, "earlier", 1), (25, "gone", 0)]
        );
        assert_eq!(said(&[(9, Some(40))], &[(10, Some(20)), (25, None)]), [(9, "later", 1), (25, "new", 0)]);
    }
}
