//! What the monitor doesn't see. One cause is one alert: while no loop runs, nothing is said of ledgers and receivers.

use super::{
    AlertRule,
    names::{EVIDENCE, OBSERVER_UP, PAUSED, READING, RUNNER, UNMEASURED, one_of, seen},
    of_monitor, recorded,
};
use crate::{
    alerts::{
        catalog::{self, Severity},
        number::{Numbers, Source},
        plan::Plan,
    },
    catalog::{families as f, labels::FollowerMode},
    domain::verdict::Verdict,
};

pub(super) fn rules(plan: &Plan<'_>, rules: &mut Vec<AlertRule>) {
    rules.push(runner(plan));
    if !plan.ledgers.is_empty() {
        rules.push(ledger(plan));
    }
    rules.extend(observers(plan));
    rules.push(canaries(plan));
    let followed: Vec<_> =
        plan.ledgers_with(|ledger| ledger.notifications.is_some()).iter().map(|ledger| ledger.name).collect();
    if !followed.is_empty() {
        rules.push(follower(&followed));
    }
}

fn blind(what: &str, expr: String, hold: &'static str, summary: &str, numbers: Numbers) -> AlertRule {
    let mut rule = of_monitor(&catalog::BLIND, expr, hold, summary, numbers);
    rule.labels.push(("blind", what.to_owned()));
    rule
}

/// A series of 1 for each of these names: what is expected, whether or not anything is there.
fn expected(label: &str, names: &[&str]) -> String {
    let each: Vec<_> = names
        .iter()
        .map(|name| format!("label_replace(vector(1), \"{label}\", \"{name}\", \"\", \"\")"))
        .collect();
    format!("({})", each.join(" or "))
}

/// Locations of which no process runs its loops, or none is scraped.
fn runner(plan: &Plan<'_>) -> AlertRule {
    let expected = expected("location", &plan.locations());
    let expr = format!("{expected}\nunless on (location) {EVIDENCE}");
    let mut rule =
        blind("runner", expr, "2m", "no canaries are known of at {{ $labels.location }}", Numbers::default());
    let failures = f::CANARY_CONSECUTIVE_FAILURES.name;
    rule.details = format!(
        "{{{{ with printf \"count by (location) ({failures}{{location='%s'}})\" $labels.location | query }}}}\
         A process is scraped there, and its loops stand still.\
         {{{{ else }}}}No process is scraped there.{{{{ end }}}}"
    );
    rule
}

/// How long a ledger's readings must have failed at a location, in one way or another: about as long as a reading may be old.
const FAILED_FOR: &str = "3m";

/// Ledgers that nobody could read, or only in part, so that counts are not known; and those of which a reading fails at a location, such as the
/// lookup of canaries.
fn ledger(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let names: Vec<_> = plan.ledgers.iter().map(|ledger| ledger.name).collect();
    let cut = seen(&f::LEDGER_TRUNCATED, "", &mut n).replace('\n', " ");
    let expr = format!(
        "({}\nunless on (ledger) {READING}\nor max by (ledger) ({cut}) == 1\nor {})\nand on () count({RUNNER}) > 0",
        expected("ledger", &names),
        failing(&names, &mut n)
    );
    let summary = "the ledger {{ $labels.ledger }} is not read, not in all ways, or not to its end";
    let mut rule = blind("ledger", expr, "2m", summary, n);
    rule.details = "The event `observer_down` in the log names the reading that fails, and why.".to_owned();
    rule
}

/// Of these ledgers, those of which a reading has failed for a while at a location: nobody there has made all of them.
fn failing(names: &[&str], n: &mut Numbers) -> String {
    let observers: Vec<_> = names.iter().map(|name| recorded::observer_of(name)).collect();
    let long = n.span(
        "time for which a reading failed",
        FAILED_FOR,
        Source::Chosen,
        "as long as a reading may be old: one that fails now and then is made again",
    );
    let up = format!("max_over_time({OBSERVER_UP}{{{}}}[{long}])", one_of("observer", &observers));
    format!("max by (ledger) (label_replace({up} == 0, \"ledger\", \"$1\", \"observer\", \"ledger/(.*)\"))")
}

/// Receivers that prove nothing at a location, and ledgers that only canaries are looked up in.
fn observers(plan: &Plan<'_>) -> Option<AlertRule> {
    let observers = recorded::observers(plan);
    if observers.is_empty() {
        return None;
    }
    let summary = "{{ $labels.observer }} can't be looked at from {{ $labels.location }}";
    let expr = format!("{OBSERVER_UP}{{{}}} == 0", one_of("observer", &observers));
    Some(blind("observer", expr, "5m", summary, Numbers::default()))
}

/// Locations of whose canaries nobody can say what became, though every observer looks: a process that restarts again and again
/// blinds each canary that is under way. One restart blinds those of one deadline, and they are settled a deadline later.
fn canaries(plan: &Plan<'_>) -> AlertRule {
    let mut n = Numbers::default();
    let silence = recorded::silence(&mut n);
    let undetermined = format!("{UNMEASURED}{{verdict=\"{}\"}}", Verdict::Undetermined.word());
    let mut expr = format!(
        "count by (location) (\ntime() - {undetermined} > on (route) group_left () {silence}\nunless on (route, location) {PAUSED} == 1\n)"
    );
    if !recorded::observers(plan).is_empty() || !plan.ledgers.is_empty() {
        expr.push_str(&format!("\nunless on (location) {OBSERVER_UP} == 0"));
    }
    let summary =
        "{{ $labels.location }}: what became of the newest canaries can't be said, on {{ $value }} routes";
    let mut rule = blind("canaries", expr, "10m", summary, n);
    let since = f::CANARY_UNMEASURED_SINCE.name;
    let word = Verdict::Undetermined.word();
    rule.details = format!(
        "{{{{ with printf \"topk(10, time() - max by (route) ({since}{{location='%s', verdict='{word}'}}))\" $labels.location | query }}}}\
         For so long:{{{{ range . }}}} {{{{ .Labels.route }}}} {{{{ .Value | humanizeDuration }}}};{{{{ end }}}} \
         `delivery-canary canary show` says why.{{{{ end }}}}"
    );
    rule
}

/// Ledgers that nobody follows: sums over real traffic are missing, ages are not.
fn follower(names: &[&str]) -> AlertRule {
    let mut n = Numbers::default();
    let following = FollowerMode::Following.word();
    let selector = format!("mode=\"{following}\"");
    let follows = seen(&f::LEDGER_FOLLOWER, &selector, &mut n).replace('\n', " ");
    let expr = format!(
        "{}\nunless on (ledger) max by (ledger) ({follows}) == 1\nand on () count({RUNNER}) > 0",
        expected("ledger", names)
    );
    let summary = "nobody follows the ledger {{ $labels.ledger }}: ratios over real traffic are not judged";
    let mut rule = blind("follower", expr, "30m", summary, n);
    rule.severity = Severity::Ticket;
    rule
}
