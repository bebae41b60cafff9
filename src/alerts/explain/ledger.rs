//! How soon what is read from the ledger says so: in closed form.
//!
//! Notifications come evenly over the day, as many as `accepted_per_day` says, one independent of the other; in an outage its share of them stays
//! as the outage leaves them. Counts of such are Poisson. Where a rule has two conditions that must hold at once, the probability of both is taken
//! as the product: they help each other, so that the rule is a little sooner than said, never later.

use super::{
    Given, Row,
    poisson::{at_least, exactly, share_above},
    times::{ByShare, Rate, Time, Times, Waits},
};
use crate::{
    alerts::{
        catalog::{self, Entry},
        eligibility::{DAY, DAYS, FAST, Pair, SLOW},
        number::full,
    },
    catalog::{bounds::ATTEMPT_WINDOW, labels::Window},
    config::scalar::Span,
};

const DAY_SECONDS: f64 = 86_400.0;
const YEAR_SECONDS: f64 = 365.0 * DAY_SECONDS;

/// What only grows is looked at for so long.
const LONGEST: f64 = 30.0 * DAY_SECONDS;

/// The bounds of windows are moved back to whole minutes.
const TO_THE_MINUTE: f64 = 60.0;

/// What becomes of a notification that is hit.
const UNDELIVERED: &str = "it stays undelivered";
const PENDING: &str = "it stays pending";
const RETRIED: &str = "it is tried again and again";
pub(super) const REFUSED: &str = "it isn't accepted";
pub(super) const UNCLEAR: &str = "its outcome stays unknown";

const NO_VOLUME: &str = "not known without `accepted_per_day`";

/// All rows of a route that its ledger is read for.
pub(super) fn rows(given: &Given<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = [
        (&catalog::BURN_FAST, FAST),
        (&catalog::BURN_SLOW, SLOW),
        (&catalog::BURN_TICKET, DAY),
        (&catalog::BURN_TICKET, DAYS),
    ]
    .into_iter()
    .map(|(entry, pair)| burn(given, entry, pair))
    .collect();
    rows.extend(
        [over_deadline(given), forgotten(given), retries(given), low_volume(given)].into_iter().flatten(),
    );
    rows.extend([stopped(given), unknown(given)].into_iter().flatten());
    rows
}

/// The flow over a route.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Accepted in a second.
    accepted: f64,
    /// The share that is bad while nothing is wrong.
    healthy: f64,
    /// The route's deadline in seconds.
    deadline: f64,
    /// How often the ledger is read, in seconds.
    refresh: f64,
}

impl Flow {
    fn of(given: &Given<'_>) -> Option<Self> {
        let route = given.route;
        Some(Self {
            accepted: route.differs.accepted_per_day? / DAY_SECONDS,
            healthy: route.route.healthy_failure_rate(),
            deadline: route.route.deadline.get().as_secs_f64(),
            refresh: route.ledger?.refresh_every.get().as_secs_f64(),
        })
    }

    /// The share that is bad in an outage of this share.
    fn bad(&self, share: f64) -> f64 {
        1.0 - (1.0 - share) * (1.0 - self.healthy)
    }

    /// How many bad ones are expected in a window, so many seconds after the beginning. What has not had its deadline yet isn't in it.
    fn bad_in(&self, window: f64, share: f64, t: f64) -> f64 {
        let out = (t - self.deadline).clamp(0.0, window);
        self.accepted * (self.bad(share) * out + self.healthy * (window - out))
    }

    /// The probability that a pair is at its bound then.
    fn burns(&self, windows: [f64; 2], bound: f64, share: f64, t: f64) -> f64 {
        let above = |window| {
            let bad = self.bad_in(window, share, t);
            share_above(bound, bad, self.accepted * window - bad)
        };
        windows.into_iter().map(above).product()
    }

    /// How often a year a pair comes to its bound by bad ones of the healthy rate alone: each that comes may be the one that takes both windows
    /// there. How many are accepted is taken as its mean, and for how long it must hold is left out, so it is not more often than that.
    fn burns_for_nothing(&self, [long, short]: [f64; 2], bound: f64) -> f64 {
        let rate = self.accepted * self.healthy;
        let least = |window: f64| (bound * self.accepted * window).floor() as u64 + 1;
        let (in_long, in_short) = (least(long), least(short));
        let both = |less: u64| {
            let (in_long, in_short) = (in_long - less, in_short - less);
            let (mean, rest) = (rate * short, rate * (long - short));
            let most = in_short + (mean + 12.0 * mean.sqrt() + 40.0) as u64;
            (in_short..=most)
                .map(|n| exactly(n, mean) * at_least(in_long.saturating_sub(n), rest))
                .sum::<f64>()
        };
        rate * YEAR_SECONDS * (both(1) - both(0)).max(0.0)
    }
}

fn by_share(times: impl Fn(f64) -> Times) -> ByShare {
    ByShare { total: times(1.0), half: times(0.5), one_in_five: times(0.2) }
}

/// When something grows likely from the deadline on, in a window or for ever.
fn seen(row: &Row, flow: &Flow, others: &[f64], settled: f64, by: impl Fn(f64) -> f64) -> Times {
    let waits = Waits::new(&[&[flow.refresh][..], others].concat());
    waits.times(&by, settled).later(row.afterwards())
}

fn burn(given: &Given<'_>, entry: &'static Entry, pair: Pair) -> Row {
    let (period, budget) = (given.plan.period(), given.route.budget());
    let bound = pair.bound(period, budget);
    let mut row = given.row(entry, UNDELIVERED);
    row.window = Some(pair.long.word());
    row.bound = format!(
        "bad share above {} over {} and {}; {} accepted in {}",
        full(bound),
        pair.long.word(),
        pair.short.word(),
        pair.least_accepted(period, budget),
        pair.long.word()
    );
    let daily = given.route.differs.accepted_per_day;
    if !given.route.is_followed() {
        return row.not_eligible("the ledger isn't followed");
    }
    if let Err(reason) = pair.judge(period, budget, daily) {
        return row.not_eligible(reason.to_string());
    }
    let Some(flow) = Flow::of(given) else { return row.without_figures(NO_VOLUME) };
    let windows = [pair.long, pair.short].map(|window| window.duration().as_secs_f64());
    let settled = windows[0] + flow.deadline;
    let times =
        |share| seen(&row, &flow, &[TO_THE_MINUTE], settled, |t| flow.burns(windows, bound, share, t));
    let times = by_share(times);
    row.with(times, Some(Rate::exact(flow.burns_for_nothing(windows, bound))), "closed form")
}

/// A count past the deadline; or, in a total outage, one that is old while nothing is delivered and canaries fail.
fn over_deadline(given: &Given<'_>) -> Option<Row> {
    let entry = &catalog::OVER_DEADLINE;
    let mut row = given.row(entry, PENDING);
    if given.route.ledger.is_none() {
        return Some(row.not_eligible("the route has no ledger that is read"));
    }
    let few = given.number(entry, "pending past the deadline")?;
    let old = given.number(entry, "deadlines of age")?;
    let budget = given.route.budget();
    row.bound = format!("more than {few} pending past the deadline");
    if budget > 0.0 {
        row.bound += &format!(", and than {} of a day's accepted", full(budget));
    }
    row.bound += &format!("; or one {old} deadlines old, nothing delivered, and canaries fail");
    let Some(flow) = Flow::of(given) else { return Some(row.without_figures(NO_VOLUME)) };
    let least = few.max(budget * flow.accepted * DAY_SECONDS).floor() as u64 + 1;
    let has_attempts = given.route.ledger.is_some_and(|ledger| ledger.attempts.is_some());
    let quiet = ATTEMPT_WINDOW.duration().as_secs_f64();
    let by = |share: f64, t: f64| {
        let stuck = |after: f64| flow.accepted * share * (t - after).max(0.0);
        let counted = at_least(least, stuck(flow.deadline));
        if share < 1.0 {
            return counted;
        }
        let delivered = if has_attempts { flow.accepted * (quiet - t).max(0.0) } else { 0.0 };
        let aged =
            at_least(1, stuck(old * flow.deadline)) * (-delivered).exp() * given.canaries.failed_twice(t);
        counted.max(aged)
    };
    let times = by_share(|share| seen(&row, &flow, &[], LONGEST, |t| by(share, t)));
    Some(row.with(times, None, "closed form").why_no_rate("it depends on how long what fails stays pending"))
}

fn forgotten(given: &Given<'_>) -> Option<Row> {
    let entry = &catalog::FORGOTTEN;
    let mut row = given.row(entry, PENDING);
    if given.route.ledger.is_none() {
        return Some(row.not_eligible("the route has no ledger that is read"));
    }
    let deadline = given.route.route.deadline.get().as_secs_f64();
    let after = given
        .number(entry, "seconds of age")
        .or_else(|| Some(given.number(entry, "deadlines of age")? * deadline))?;
    row.bound = format!("one pending for {}", Span(std::time::Duration::from_secs_f64(after)));
    let Some(flow) = Flow::of(given) else { return Some(row.without_figures(NO_VOLUME)) };
    let times = first_after(&row, &flow, after);
    Some(row.with(times, None, "closed form").why_no_rate("as often as one is forgotten"))
}

/// The first that the outage hits, and so long after it.
fn first_after(row: &Row, flow: &Flow, after: f64) -> ByShare {
    by_share(|share| {
        seen(row, flow, &[], LONGEST, |t| at_least(1, flow.accepted * share * (t - after).max(0.0)))
    })
}

fn unknown(given: &Given<'_>) -> Option<Row> {
    let entry = &catalog::UNKNOWN;
    let mut row = given.row(entry, UNCLEAR);
    if given.route.ledger.is_none() {
        return Some(row.not_eligible("the route has no ledger that is read"));
    }
    let after = given.number(entry, "seconds of age")?;
    row.bound = format!("one unknown for {}", Span(std::time::Duration::from_secs_f64(after)));
    let Some(flow) = Flow::of(given) else { return Some(row.without_figures(NO_VOLUME)) };
    let times = first_after(&row, &flow, after);
    Some(row.with(times, None, "closed form").why_no_rate("as often as one stays unknown"))
}

/// Many attempts that are to be tried again. One attempt for each notification is reckoned with, and a usual share of the healthy rate.
fn retries(given: &Given<'_>) -> Option<Row> {
    let entry = &catalog::RETRY_SURGE;
    let mut row = given.row(entry, RETRIED);
    if given.route.ledger.is_none_or(|ledger| ledger.attempts.is_none()) {
        return Some(row.not_eligible("no attempts are followed"));
    }
    let (least, times) = (given.number(entry, "least number")?, given.number(entry, "times the usual")?);
    row.bound = format!("{times} times the usual share, and {least} attempts, in {}", ATTEMPT_WINDOW.word());
    let Some(flow) = Flow::of(given) else { return Some(row.without_figures(NO_VOLUME)) };
    let window = ATTEMPT_WINDOW.duration().as_secs_f64();
    let by = |share: f64, t: f64| {
        let out = t.clamp(0.0, window);
        let is_above = share * out > times * flow.healthy * window;
        if is_above { at_least(least as u64, flow.accepted * share * out) } else { 0.0 }
    };
    let times = by_share(|share| seen(&row, &flow, &[TO_THE_MINUTE], window, |t| by(share, t)));
    Some(row.with(times, None, "closed form").why_no_rate("it depends on how the route's share varies"))
}

fn low_volume(given: &Given<'_>) -> Option<Row> {
    let entry = &catalog::LOW_VOLUME;
    let mut row = given.row(entry, UNDELIVERED);
    if !given.route.is_followed() {
        return Some(row.not_eligible("the ledger isn't followed"));
    }
    let least = given.number(entry, "bad in a day")?;
    row.bound = format!("{least} bad in a day, where no ratio judges");
    let Some(flow) = Flow::of(given) else { return Some(row.without_figures(NO_VOLUME)) };
    let (period, budget) = (given.plan.period(), given.route.budget());
    let judges = [FAST, SLOW, DAY]
        .into_iter()
        .find(|pair| pair.judge(period, budget, given.route.differs.accepted_per_day).is_ok());
    if let Some(pair) = judges {
        return Some(row.not_eligible(format!("the ratio over {} judges this route", pair.long.word())));
    }
    let (day, least) = (Window::Day.duration().as_secs_f64(), least as u64);
    let by = |share: f64, t: f64| at_least(least, flow.bad_in(day, share, t));
    let times = by_share(|share| seen(&row, &flow, &[TO_THE_MINUTE], day + flow.deadline, |t| by(share, t)));
    let bad = flow.accepted * flow.healthy;
    // Each that comes while one less than enough were there is the one that fires it.
    let rate = bad * YEAR_SECONDS * exactly(least - 1, bad * day);
    Some(row.with(times, Some(Rate::exact(rate)), "closed form"))
}

/// Nothing is accepted any more. While anything is, it is silent.
fn stopped(given: &Given<'_>) -> Option<Row> {
    let entry = &catalog::STOPPED;
    let mut row = given.row(entry, REFUSED);
    if !given.route.is_followed() {
        return Some(row.not_eligible("the ledger isn't followed"));
    }
    let (busy, failing) =
        (given.number(entry, "accepted in that hour")?, given.number(entry, "canaries failed in a row"));
    let hour = Window::Hour.duration().as_secs_f64();
    row.bound = format!("nothing accepted in {}, and {busy} a week ago", Window::Hour.word());
    if failing.is_some() {
        row.bound += ", and canaries fail; else a ticket";
    }
    let Some(flow) = Flow::of(given) else { return Some(row.without_figures(NO_VOLUME)) };
    let was_busy = at_least(busy as u64, flow.accepted * hour);
    if was_busy < 0.5 {
        let hourly = flow.accepted * hour;
        return Some(row.not_eligible(format!("{hourly:.1} are accepted in an hour, and {busy} are needed")));
    }
    let by = |t: f64| {
        let left = flow.accepted * (hour + flow.deadline - t).clamp(0.0, hour);
        was_busy * (-left).exp() * given.canaries.failed_twice(t)
    };
    let total = seen(&row, &flow, &[TO_THE_MINUTE], LONGEST, by);
    let never = Times::always(Time::Never);
    let times = ByShare { total, half: never, one_in_five: never };
    Some(row.with(times, None, "closed form").why_no_rate("it depends on how traffic varies by the hour"))
}
