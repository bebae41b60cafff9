//! Alerts on what canaries show.

use super::{
    AlertRule,
    ledger::or_more,
    names::{EVERY, EVIDENCE, GAP, MAINTENANCE, OBSERVER_UP, SILENT, SINCE, newest, one_of, seen},
    of_routes,
};
use crate::{
    alerts::{
        catalog::{self, Severity},
        number::{Numbers, Source},
        plan::{Plan, RoutePlan},
    },
    catalog::families as f,
    config::{alerts::SlowSeverity, model::PageOn},
    domain::{
        failure_evidence::Question,
        following::Stopped,
        verdict::{ExpectedEnd, Verdict},
    },
};

/// Where evidence on one question is at its bound: by a majority of the locations that can look, or by one.
///
/// The second clause asks for what the sum's own allowance gives already. It also holds where a monitor of an older build,
/// whose sum has no allowance, is scraped.
fn at_bound(plan: &RoutePlan<'_>, question: Question, n: &mut Numbers) -> String {
    let evidence = &plan.route.evidence;
    let bound = n.put("evidence", evidence.bound, Source::Configured, "`evidence.bound`, in powers of ten");
    let sustain = n.seconds(
        "seconds of failing",
        evidence.sustain.get(),
        Source::Configured,
        "`evidence.sustain`: what is shorter is a blip",
    );
    let here = format!("{{question=\"{}\", route=\"{}\"}}", question.word(), plan.name);
    let counted = format!(
        "count by (route) (\n{EVIDENCE}{here} >= {bound}\nand time() - {SINCE}{here} >= {sustain}\n)"
    );
    match plan.route.page_on {
        PageOn::Any => format!("{counted} > 0"),
        PageOn::Majority => {
            let two = n.put("halves", 2.0, Source::Chosen, "more than half of the locations that can look");
            // Where its receiver proves nothing, nothing is sent, or canaries say nothing, there is no evidence, and so no say.
            let up = plan.route.receipt.as_ref().map_or_else(String::new, |receipt| {
                format!(" and on (location) {OBSERVER_UP}{{observer=\"receiver/{}\"}} == 1", receipt.receiver)
            });
            let looking = format!(
                "(\n{EVIDENCE}{here} >= {bound}\nor ({EVIDENCE}{here}{up} unless on (route, location) {SILENT})\n)"
            );
            format!("{counted} * {two} > count by (route) {looking}")
        }
    }
}

fn of_route(plan: &RoutePlan<'_>) -> Vec<(&'static str, String)> {
    vec![("route", plan.name.to_string()), ("channel", plan.route.channel.word().to_owned())]
}

/// What is known when a page is written. Each query may have no answer, and the text then says so.
fn details(plan: &RoutePlan<'_>, question: Question) -> String {
    let stopped = f::CANARY_STOPPED_AT.name;
    let since = f::CANARY_FAILING_SINCE.name;
    let over = f::LEDGER_PENDING_OVER_DEADLINE.name;
    let unmeasured = f::CANARY_UNMEASURED_SINCE.name;
    let paused = f::CANARY_PAUSED.name;
    let ledger = plan.route.ledger.as_ref().filter(|_| plan.ledger.is_some());
    let or_more = ledger.map_or(String::new(), |ledger| or_more(&format!("ledger='{ledger}'")));
    let word = question.word();
    // Not being able to look is no place in the service.
    let unseen = Stopped::Monitor.word();
    let provider = plan.route.provider.as_deref().unwrap_or("not configured");
    let configured = &plan.route.controls;
    let controls = f::CANARY_CONTROLS.name;
    let arms: Vec<_> = [("sink", &configured.sink), ("provider", &configured.provider)]
        .into_iter()
        .filter_map(|(name, arm)| arm.as_ref().map(|_| name))
        .collect();
    let arms = if arms.is_empty() {
        "There are no control arms.".to_owned()
    } else {
        format!(
            "Control arms: {}. {{{{ with printf \"max by (arm, class) ({controls}{{route='%s'}})\" $labels.route | query }}}}\
             In the last hour, before this failure or in it:\
             {{{{ range . }}}} {{{{ .Labels.arm }}}} {{{{ .Labels.class }}}} {{{{ .Value }}}};{{{{ end }}}} \
             what fails together with its control is not the service's fault.\
             {{{{ else }}}}None of their canaries was settled in the last hour.{{{{ end }}}}",
            arms.join(", ")
        )
    };
    format!(
        "{{{{ with printf \"group by (stage) ({stopped}{{route='%s'}})\" $labels.route | query }}}}\
         The newest failure stopped at:{{{{ range . }}}} {{{{ if eq .Labels.stage \"{unseen}\" }}}}a stage that is not known, since the ledger \
         was not read late enough{{{{ else }}}}{{{{ .Labels.stage }}}}{{{{ end }}}}{{{{ end }}}}.\
         {{{{ else }}}}Where the newest failure stopped is not known.{{{{ end }}}}\n\
         Provider: {provider}. {arms}\n\
         {{{{ with printf \"min by (route) ({since}{{route='%s', question='{word}'}})\" $labels.route | query }}}}\
         First failure that counts: {{{{ . | first | value | humanizeTimestamp }}}}; it began then or later.\
         {{{{ else }}}}Since when is not known.{{{{ end }}}}\n\
         {{{{ with printf \"max by (route) ({over}{{route='%s'}})\" $labels.route | query }}}}\
         Real notifications pending past their deadline: {{{{ . | first | value | humanize }}}}{or_more}.\
         {{{{ else }}}}How many real notifications are past their deadline is not known.{{{{ end }}}}\
         {{{{ range printf \"max by (verdict) ({unmeasured}{{route='%s'}})\" $labels.route | query }}}}\n\
         The newest canaries say nothing, they are {{{{ .Labels.verdict }}}} since {{{{ .Value | humanizeTimestamp }}}}: this is from before them.{{{{ end }}}}\
         {{{{ range printf \"max by (route) ({paused}{{route='%s'}}) == 1\" $labels.route | query }}}}\n\
         Sending is paused: this is from before, and stays until canaries go out again.{{{{ end }}}}"
    )
}

pub(super) fn failing(plan: &RoutePlan<'_>) -> AlertRule {
    let mut numbers = Numbers::default();
    let bound = at_bound(plan, Question::Arrives, &mut numbers);
    AlertRule {
        entry: &catalog::CANARY_FAILING,
        severity: Severity::Page,
        expr: format!("{bound}\nunless on (route) {MAINTENANCE}"),
        hold: "1m",
        keep_firing: plan.differs.keep_firing,
        labels: of_route(plan),
        summary: format!("{}: canaries do not arrive", plan.name),
        details: details(plan, Question::Arrives),
        numbers,
    }
}

pub(super) fn slow(plan: &RoutePlan<'_>) -> AlertRule {
    let mut numbers = Numbers::default();
    let late = at_bound(plan, Question::InTime, &mut numbers);
    let lost = at_bound(plan, Question::Arrives, &mut numbers).replace('\n', " ");
    let mut expr = format!("{late}\nunless on (route) ({lost})");
    let severity = match plan.differs.slow {
        SlowSeverity::Ticket => Severity::Ticket,
        SlowSeverity::Page => {
            expr.push_str(&format!("\nunless on (route) {MAINTENANCE}"));
            Severity::Page
        }
    };
    AlertRule {
        entry: &catalog::CANARY_SLOW,
        severity,
        expr,
        hold: "1m",
        keep_firing: plan.differs.keep_firing,
        labels: of_route(plan),
        summary: format!("{}: canaries arrive late", plan.name),
        details: details(plan, Question::InTime),
        numbers,
    }
}

pub(super) fn rules(plan: &Plan<'_>, rules: &mut Vec<AlertRule>) {
    rules.push(disagreement());
    rules.extend(suppressed(plan));
    rules.push(missing());
    rules.push(guard());
    rules.push(paused());
}

fn disagreement() -> AlertRule {
    let mut n = Numbers::default();
    let seen = seen(&f::CANARY_DISAGREEMENTS, "", &mut n);
    let least =
        n.put("contradictions of a kind in a day", 2.0, Source::Chosen, "one may be a race of two readings");
    let expr = format!("max by (route, kind) (\n{seen}\n) >= {least}");
    of_routes(
        &catalog::DISAGREEMENT,
        &expr,
        "10m",
        "the three views contradict each other: {{ $labels.kind }}",
        n,
    )
}

fn suppressed(plan: &Plan<'_>) -> Option<AlertRule> {
    let measured: Vec<_> = plan
        .routes
        .iter()
        .filter(|route| route.route.expected_end != ExpectedEnd::Suppressed)
        .map(|route| route.name.as_str())
        .collect();
    if measured.is_empty() {
        return None;
    }
    let mut n = Numbers::default();
    let routes = one_of("route", &measured);
    let word = Verdict::Suppressed.word();
    let seen = seen(&f::CANARY_VERDICTS, &format!("verdict=\"{word}\", {routes}"), &mut n);
    let least = n.put(
        "suppressed canaries in a day",
        2.0,
        Source::Chosen,
        "one may be a list that was mended at once",
    );
    let expr = format!("max by (route) (\n{seen}\n) >= {least}");
    Some(of_routes(&catalog::SUPPRESSED, &expr, "10m", "canaries are suppressed, so nothing is measured", n))
}

/// The exporter knows the schedule, and so when a slot was due; a median interval does not. A route that never sent has only what each
/// process saw since it began, which processes that begin anew again and again never see: that is told after days.
fn missing() -> AlertRule {
    let mut n = Numbers::default();
    let overdue = seen(&f::CANARY_OVERDUE_SLOT, "", &mut n);
    let submitted = newest(&f::CANARY_LAST_SUBMIT, "", &mut n);
    let times =
        n.put("intervals after a slot", 2.0, Source::Chosen, "that slot may be missed, three are no chance");
    let known = n.span("time known", "3d", Source::Chosen, "longer than a week-end without slots");
    let seconds = n.put("seconds known", 259_200.0, Source::Derived, "three days");
    let day = n.span("time since a pause", "1d", Source::Chosen, "after a pause the next slot comes first");
    let paused = f::CANARY_PAUSED.name;
    let expr = format!(
        "time() - min by (route) (\n{overdue}\n) > on (route) {times} * {EVERY}\n\
         or {EVERY} offset {known} * {times} < {seconds}\n\
         and on (route) {EVERY}\n\
         unless on (route) {submitted}\n\
         unless on (route) max by (route) (max_over_time({paused}[{day}])) == 1"
    );
    of_routes(&catalog::MISSING, &expr, "10m", "no canary was submitted for three intervals", n)
}

fn guard() -> AlertRule {
    let mut n = Numbers::default();
    let days = n.span(
        "time looked back",
        "3d",
        Source::Chosen,
        "tickets wait for office hours: a refusal of Friday evening is still one on Monday",
    );
    let expr = format!("max by (route, reason) (increase({}[{days}])) > 0", f::CANARY_GUARD_REFUSALS.name);
    of_routes(&catalog::GUARD, &expr, "0m", "the guard stopped a request: {{ $labels.reason }}", n)
}

/// A process that began in the pause knows nothing of what was before it, so all of the last day have a say, also those that are gone. A
/// process that was there all day has it alone: where locations have stores of their own, a pause is of one of them.
fn paused() -> AlertRule {
    let mut n = Numbers::default();
    let name = f::CANARY_PAUSED.name;
    let day = n.span(
        "time paused",
        "1d",
        Source::Chosen,
        "what is meant for longer can be written into the configuration",
    );
    let now = newest(&f::CANARY_PAUSED, "", &mut n);
    let all_day = format!("min_over_time({name}[{day}])");
    let before = format!("last_over_time({name}[{GAP}] offset {day})");
    let expr = format!(
        "min by (route) ({all_day}) == 1\n\
         and on (route) {before} == 1\n\
         or group by (route) ({now} == 1 and {all_day} == 1 and {before} == 1)"
    );
    of_routes(&catalog::PAUSED, &expr, "0m", "sending has been paused for a day", n)
}
