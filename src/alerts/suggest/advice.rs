//! From what was seen to what is proposed.

use super::{
    bounds::{Quantile, needed_for, quantile, share_at_least, share_at_most},
    observed::Seen,
    rounding::{minute_after, near, percent, time_up, up},
};
use crate::{
    alerts::{explain::times::Rate, number::full},
    config::{Route, scalar::Span},
    domain::{failure_evidence::Weights, verdict::ExpectedEnd},
};
use chrono::TimeDelta;

/// The shortest `sustain` that is proposed.
const LEAST_SUSTAIN: Span = Span::seconds(300);

/// With so many failures a rate is measured to within a factor of two.
const MEASURED: u64 = 10;

/// The greatest bound that a configuration may have.
const MOST_BOUND: f64 = 20.0;

/// What is proposed for one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The setting.
    pub key: &'static str,
    /// As it is now; nothing where it isn't set.
    pub current: Option<String>,
    /// What is proposed, which may be the same; nothing where there is nothing to write.
    pub proposed: Option<String>,
    /// Why.
    pub why: String,
    /// The numbers that it stands on.
    pub numbers: Vec<(&'static str, f64)>,
}

impl Advice {
    /// Whether something else is proposed than what is there.
    pub fn is_change(&self) -> bool {
        self.proposed.is_some() && self.proposed != self.current
    }

    fn of(key: &'static str, current: String, proposed: Option<String>, why: String) -> Self {
        let proposed = proposed.or_else(|| Some(current.clone()));
        Self { key, current: Some(current), proposed, why, numbers: Vec::new() }
    }

    fn with(mut self, numbers: &[(&'static str, f64)]) -> Self {
        self.numbers = numbers.to_vec();
        self
    }
}

/// How many notifications a route's followed ledger had on whole days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// By day, the first first. Empty: nobody follows, or not for a whole day yet.
    pub by_day: Vec<u64>,
}

/// What a route's advice is made from.
pub struct Given<'a> {
    /// The route.
    pub route: &'a Route,
    /// What its canaries showed.
    pub seen: &'a Seen,
    /// What its followed ledger had; nothing where its ledger isn't followed.
    pub accepted: Option<&'a Accepted>,
    /// How many notifications are accepted a day, by the configuration.
    pub accepted_per_day: Option<f64>,
    /// False pages a year that this route may have.
    pub false_pages: f64,
    /// How often these weights page for nothing a year.
    pub noise: &'a dyn Fn(Weights) -> Rate,
}

/// The advice on every setting of a route.
pub fn advise(given: &Given<'_>) -> Vec<Advice> {
    let (deadline, until) = deadline(given);
    let (sustain, lasting) = sustain(given);
    let (p0, healthy) = p0(given, until);
    let evidence = &given.route.evidence;
    let weighed = Weights::new(healthy, evidence.p1, evidence.bound, lasting.delta());
    let mut all = vec![deadline, p0, sustain, bound(given, weighed)];
    all.extend(accepted(given));
    all
}

/// How many would have failed by this deadline.
fn failures(given: &Given<'_>, deadline: Span) -> u64 {
    let (route, seen) = (given.route, given.seen);
    if deadline == route.deadline {
        return seen.failures;
    }
    let in_time = |deadline: Span| seen.arrivals.partition_point(|time| *time <= deadline.delta()) as u64;
    // By a longer one, those that were late between both fail no more; by a shorter one, those between both fail too.
    (seen.failures + in_time(route.deadline)).saturating_sub(in_time(deadline))
}

/// The healthy failure rate, by this deadline: that which it is surely not above, where that says more than what is there.
fn p0(given: &Given<'_>, deadline: Span) -> (Advice, f64) {
    let (seen, evidence) = (given.seen, &given.route.evidence);
    let current = given.route.healthy_failure_rate();
    let (failures, n) = (failures(given, deadline), seen.canaries);
    let (low, high) = (share_at_least(failures, n), share_at_most(failures, n));
    let by = if deadline == given.route.deadline {
        String::new()
    } else {
        format!(" by a deadline of {deadline}")
    };
    let counted =
        format!("{failures} of {n} scheduled canaries failed or were late{by} outside of incidents");
    let range = format!(
        "so the rate is at least {} and at most {} (each 95 % sure, Clopper-Pearson)",
        percent(low),
        percent(high)
    );
    // By a smaller one a single failure would be enough where nothing has to last.
    let least = if evidence.sustain == Span::seconds(0) {
        evidence.p1 * 10f64.powf(0.1 - evidence.bound)
    } else {
        0.0
    };
    let proposed = up(high.max(least));
    let (write, why) = if n == 0 {
        (None, format!("no canary outside of incidents: keep {}", percent(current)))
    } else if proposed * 2.0 > evidence.p1 {
        let p1 = percent(evidence.p1);
        (None, format!("{counted}, {range}: that is above half of p1, {p1}. Mend the route, or raise p1"))
    } else if high < current || low > current || failures >= MEASURED {
        (Some(proposed), format!("{counted}, {range}; the greater, rounded up"))
    } else if failures == 0 {
        let most = percent(high);
        let why = format!(
            "only {n} canaries, and none failed: p0 below {most} can't be told; keep {}",
            percent(current)
        );
        (None, why)
    } else {
        (None, format!("{counted}, {range}: that holds what is there; keep {}", percent(current)))
    };
    let mut why = why;
    let runs = seen.runs.len() as u64;
    if runs > 0 && runs * 2 <= seen.failures {
        why += &format!(
            "; the failures came in {runs} runs, so they are not independent, and both are surer than they should be"
        );
    }
    let budget = given.route.budget();
    if low > current && !seen.incidents.is_empty() {
        why += "; by a p0 that is too low noise is taken for incidents, and left out: look again with the new one";
    }
    if low > budget {
        why += &format!("; that is more than the objective leaves, {}", percent(budget));
    }
    let numbers = [
        ("canaries", n as f64),
        ("failures", failures as f64),
        ("at_least", low),
        ("at_most", high),
        ("runs", runs as f64),
    ];
    let advice = Advice::of("p0", full(current), write.map(full), why).with(&numbers);
    (advice, write.unwrap_or(current))
}

/// The deadline: the time within which of those that arrive surely as many do as the objective asks for.
fn deadline(given: &Given<'_>) -> (Advice, Span) {
    let (route, seen) = (given.route, given.seen);
    let current = route.deadline;
    let q = route.objective_percent / 100.0;
    let (never, needed) = (seen.never, needed_for(q));
    let n = seen.arrivals.len();
    let mut numbers =
        vec![("arrivals", n as f64), ("never", never as f64), ("quantile", q), ("needed", needed as f64)];
    let objective = full(route.objective_percent);
    let highest = || {
        let known = [0.999, 0.99, 0.95].into_iter().filter(|lower| *lower < q);
        let said = known.filter_map(|q| match quantile(&seen.arrivals, 0, q) {
            Quantile::AtMost(time) => Some(format!("; {} arrive within {}", percent(q), seconds(time))),
            Quantile::TooFew | Quantile::Beyond => None,
        });
        said.take(1).collect::<String>()
    };
    let (write, why) = match quantile(&seen.arrivals, 0, q) {
        _ if route.expected_end != ExpectedEnd::Delivered => {
            (None, format!("arrivals are not expected here: keep {current}"))
        }
        Quantile::TooFew | Quantile::Beyond => {
            let few = format!("only {n} arrivals outside of incidents, and {needed} are needed");
            (
                None,
                format!("{few} to tell within which time {objective} % arrive: keep {current}{}", highest()),
            )
        }
        Quantile::AtMost(time) => {
            numbers.push(("at_most_seconds", time.as_seconds_f64()));
            let longest = Span(route.follow_for.get().saturating_sub(route.settle.get()));
            let proposed = time_up(time).min(longest);
            let mut said = format!(
                "of {n} canaries that arrived outside of incidents {objective} % do within {} (95 % sure, by rank)",
                seconds(time)
            );
            let is_kept = proposed < current && route.ledger.is_some();
            if !is_kept && time <= proposed.delta() {
                said += ", rounded up";
            }
            if quantile(&seen.arrivals, never, q) == Quantile::Beyond {
                said += &format!(
                    "; {never} more did not arrive: with them no deadline holds {objective} % for sure"
                );
            }
            if is_kept {
                let why = format!(
                    "{said}; but the deadline judges the ledger's notifications too, and how long those take isn't known: keep {current}"
                );
                (None, why)
            } else if time > proposed.delta() {
                (
                    None,
                    format!(
                        "{said}, and `follow_for` leaves no more than {longest}: raise it; keep {current}"
                    ),
                )
            } else {
                (Some(proposed), said)
            }
        }
    };
    let advice = Advice::of("deadline", current.to_string(), write.map(|span| span.to_string()), why);
    (advice.with(&numbers), write.unwrap_or(current))
}

fn seconds(time: TimeDelta) -> String {
    format!("{:.1}s", time.as_seconds_f64())
}

/// How long failing must last: longer than what ended by itself.
fn sustain(given: &Given<'_>) -> (Advice, Span) {
    let (seen, current) = (given.seen, given.route.evidence.sustain);
    let runs = seen.runs.len() as u64;
    let longest = seen.runs.last().copied().unwrap_or(TimeDelta::zero());
    let proposed = minute_after(longest).max(LEAST_SUSTAIN).min(Span::seconds(86_400));
    let few = needed_for(0.95);
    let lasted = format!(
        "the longest of {runs} runs of failures that ended by themselves lasted {} from its first failure to its last",
        Span::seconds(u64::try_from(longest.num_seconds()).unwrap_or(0))
    );
    let (write, why) = if runs == 0 {
        (None, format!("nothing failed outside of incidents, so nothing is known of blips: keep {current}"))
    } else if proposed > current {
        (Some(proposed), format!("{lasted}: above it, and at least {LEAST_SUSTAIN}"))
    } else if proposed < current && runs >= few {
        (Some(proposed), format!("{lasted}: above it, and at least {LEAST_SUSTAIN}; a page comes sooner so"))
    } else if proposed < current {
        let why = format!(
            "{lasted}; {few} are needed to tell that 95 of 100 are no longer than that: keep {current}"
        );
        (None, why)
    } else {
        (None, format!("{lasted}: keep {current}"))
    };
    let short: Vec<TimeDelta> = seen
        .incidents
        .iter()
        .filter(|incident| incident.until.is_some())
        .map(|incident| incident.failing_for)
        .filter(|lasted| *lasted <= current.delta() * 2)
        .collect();
    let mut why = why;
    if let Some(longest) = short.iter().max() {
        why += &format!(
            "; {} of the incidents lasted at most twice as long: where such mend themselves, try `alerts backtest --sustain {}`",
            short.len(),
            minute_after(*longest)
        );
    }
    let numbers = [("runs", runs as f64), ("longest_seconds", longest.as_seconds_f64())];
    let advice = Advice::of("sustain", current.to_string(), write.map(|span| span.to_string()), why);
    (advice.with(&numbers), write.unwrap_or(current))
}

/// The bound: the least above what is there that keeps noise within the route's share of false pages.
fn bound(given: &Given<'_>, weights: Weights) -> Advice {
    let (current, share) = (weights.bound, given.false_pages);
    let at = |bound: f64| (given.noise)(Weights { bound, ..weights });
    let now = at(current);
    let p0 = percent(weights.p0);
    let said = format!(
        "{now} false pages a year at {current} with p0 {p0}, by simulation, and {} may be",
        full(near(share))
    );
    let numbers = [("false_pages_a_year", now.a_year), ("at_most_a_year", now.high), ("may_be", share)];
    if now.high <= share {
        let why = format!("{said}: keep {current}");
        return Advice::of("bound", full(current), None, why).with(&numbers);
    }
    let mut bounds = (1..).map(|halves| (current * 2.0).floor() / 2.0 + f64::from(halves) / 2.0);
    let least =
        bounds.by_ref().take_while(|bound| *bound <= MOST_BOUND).find(|bound| at(*bound).high <= share);
    let why = match least {
        Some(bound) => format!("{said}: {} at {bound}. Noise in bursts comes to more", at(bound)),
        None => format!(
            "{said}: no bound up to {MOST_BOUND} keeps to that. Mend the route, or send fewer canaries"
        ),
    };
    Advice::of("bound", full(current), least.map(full), why).with(&numbers)
}

/// How many notifications are accepted a day.
fn accepted(given: &Given<'_>) -> Option<Advice> {
    let days = &given.accepted?.by_day;
    let current = given.accepted_per_day.map(full);
    let key = "accepted_per_day";
    let (Some(least), Some(most)) = (days.iter().min(), days.iter().max()) else {
        let why = "no whole day has been followed yet".to_owned();
        return Some(Advice { key, proposed: current.clone(), current, why, numbers: Vec::new() });
    };
    let mean = days.iter().sum::<u64>() as f64 / days.len() as f64;
    let mut why = format!("the mean of {} whole days that were followed, {least} to {most}", days.len());
    if days.len() < 7 {
        why += "; a week has days of all kinds: look again when it is over";
    }
    let numbers =
        vec![("days", days.len() as f64), ("mean", mean), ("least", *least as f64), ("most", *most as f64)];
    Some(Advice { key, current, proposed: Some(full(near(mean))), why, numbers })
}
