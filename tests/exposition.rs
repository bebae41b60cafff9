//! What is on `/metrics`: clean, complete, bounded, and exactly what the catalog says.

use crate::common::{page_bench, scrape};
use chrono::TimeDelta;
use delivery_canary::{
    acceptance::guard,
    catalog::{
        FAMILIES, Label, Values,
        bounds::{SERIES_AT_WORST, SERIES_PER_ROUTE, stage_bounds},
        families::PROCESS_FAMILIES,
        family,
        labels::{Stage, SubmissionLabel},
        reference,
    },
    domain::{
        evidence::{AmbiguityReason, RefusalReason, SubmissionResult},
        pending::{PendingRow, PendingSnapshot, Tried},
        route::{Channel, RouteName},
    },
    ledger::LedgerFigures,
    monitor::snapshot::Snapshot,
    receipt::stats::{ArrivalResult, ReceiverStats},
};
use page_bench::{Bench, FULL, config, configure, full, full_bench, instant, reading};
use proptest::prelude::*;
use scrape::{Scrape, promtool_accepts};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

#[test]
fn promtool_finds_nothing_on_a_full_a_first_and_an_empty_page() {
    let (config, bench) = full_bench();
    let empty = Bench::new(&config);
    empty.cell.publish(Snapshot::default());
    for page in [bench.page(), Bench::new(&config).page(), empty.page()] {
        promtool_accepts(&page);
        Scrape::read(&page).unwrap();
    }
}

#[test]
fn the_page_and_the_catalog_have_the_same_names_labels_and_kinds() {
    let (_, bench) = full_bench();
    let scrape = bench.scrape();
    let exported: BTreeSet<_> = scrape.kinds.keys().map(String::as_str).collect();
    let known: BTreeSet<_> = FAMILIES.iter().map(|f| f.name).chain(PROCESS_FAMILIES).collect();
    assert_eq!(exported, known);
    for family in FAMILIES {
        assert_eq!(scrape.kinds[family.name], family.kind.word(), "{}", family.name);
        let names: BTreeSet<_> = family.labels.iter().map(|label| label.name()).collect();
        assert_eq!(names.len(), family.labels.len(), "{} has a label twice", family.name);
        for labels in scrape.label_sets(family.name) {
            assert_eq!(labels.keys().map(String::as_str).collect::<BTreeSet<_>>(), names, "{}", family.name);
            for label in family.labels {
                if let Values::Words(words) = label.values() {
                    let value = labels[label.name()].as_str();
                    assert!(words.contains(&value), "{value} is no {} of {}", label.name(), family.name);
                }
            }
        }
    }
}

/// Every label set of a family that exists before anything was looked at: the product of its labels' words, for what is configured.
fn expected_at_first(labels: &[Label]) -> BTreeSet<BTreeMap<String, String>> {
    let mut sets = BTreeSet::from([BTreeMap::new()]);
    for label in labels {
        let values = match (label, label.values()) {
            (Label::Channel, _) => vec!["webhook"],
            (Label::VolumeClass, _) => vec!["unknown"],
            (_, Values::Words(words)) => words,
            (Label::Route, _) => vec![FULL],
            (Label::Location, _) => vec!["zurich"],
            (Label::Provider, _) => vec!["acme"],
            (Label::Ledger, _) => vec!["main"],
            (Label::Receiver, _) => vec!["hook"],
            (Label::Observer, _) => vec!["ledger/main", "receiver/hook"],
            (Label::Version, _) => vec![env!("CARGO_PKG_VERSION")],
            (Label::Revision, _) => vec![delivery_canary::exposition::collector::REVISION],
            (other, _) => panic!("{other:?} is in no family that is always there"),
        };
        let with = |set: &BTreeMap<String, String>, value: &str| {
            set.clone().into_iter().chain([(label.name().to_owned(), value.to_owned())]).collect()
        };
        sets = sets
            .iter()
            .flat_map(|set| values.iter().map(move |v| with(set, v)).collect::<Vec<_>>())
            .collect();
    }
    sets
}

#[test]
fn trial_03_every_series_that_may_not_be_absent_is_there_at_the_first_scrape() {
    let scrape = Bench::new(&config(&["receipts"], "acme")).scrape();
    for family in FAMILIES {
        let expected = match family.absent_when {
            None => expected_at_first(family.labels),
            Some(_) => BTreeSet::new(),
        };
        assert_eq!(scrape.label_sets(family.name), expected, "{}", family.name);
    }
    assert_eq!(scrape.value("delivery_monitor_store_up", &[]), Some(0.0));
    let unseen = scrape.value("delivery_monitor_observer_up", &[("observer", "receiver/hook")]);
    assert_eq!(unseen, Some(0.0), "what was never looked at is not up");
}

#[test]
fn a_route_stays_within_its_series() {
    let (_, bench) = full_bench();
    let series = bench.scrape().with_label("route", FULL);
    let catalog: usize = FAMILIES.iter().map(|family| family.series_per_route()).sum();
    // Contradictions have a series for each kind, of which the bench has them all.
    assert_eq!(series, catalog, "the catalog counts as the page does");
    assert!(series <= SERIES_AT_WORST, "{series} series, the limit is {SERIES_AT_WORST}");
}

#[test]
fn a_route_that_is_well_stays_within_its_budget() {
    let config = config(&["receipts"], "acme");
    let bench = Bench::new(&config);
    let mut snapshot = full(&config);
    for route in snapshot.routes.values_mut() {
        (route.arrives, route.in_time) = Default::default();
        (route.stopped_at, route.overdue_slot) = (None, None);
        route.unmeasured = None;
        route.disagreements.clear();
        route.controls.clear();
    }
    let ledger = snapshot.ledgers.get_mut("main").unwrap();
    let mut pending = reading(&config, false).at_least().clone();
    pending.routes.values_mut().for_each(|pending| pending.oldest_unknown = None);
    ledger.pending = Some(PendingSnapshot::followed(instant(0), pending));
    let numbers = ledger.flow.figures.as_mut().map(Arc::make_mut).unwrap();
    for flow in numbers.routes.values_mut() {
        // No baseline and no count to hold against is configured by default.
        (flow.stuck_before_baseline, flow.residue, flow.accepted_in_hour) = (None, None, None);
    }
    bench.cell.publish(snapshot);
    let series = bench.scrape().with_label("route", FULL);
    assert!(series <= SERIES_PER_ROUTE, "{series} series, the budget is {SERIES_PER_ROUTE}");
}

#[test]
fn a_hundred_thousand_texts_leave_the_number_of_series_unchanged() {
    let (config, bench) = full_bench();
    let before = bench.scrape().samples.len();
    let deadlines = config.routes.iter().map(|r| (r.full_name(), r.deadline.get())).collect();
    let text = |n: u32| format!("error {n}: \"connection to 10.0.0.{n}\"\n refused");
    let rows = (0..100_000).map(|n| PendingRow {
        route: Some(RouteName::from_text(text(n))),
        due: Some(instant(-i64::from(n))),
        tried: Tried::WillRetry,
        count: 1,
    });
    let mut snapshot = full(&config);
    snapshot.ledgers.get_mut("main").unwrap().pending =
        Some(PendingSnapshot::fold(instant(0), &deadlines, rows, 0, false));
    for n in 0..100_000 {
        let route = RouteName::from_text(text(n));
        assert!(bench.counters.route(&route).is_none());
        assert!(bench.counters.receiver(&text(n)).is_none());
        bench.counters.observe_stage(&route, Stage::Receipt, TimeDelta::seconds(1));
    }
    bench.cell.publish(snapshot);
    let scrape = bench.scrape();
    // The route `webhook/receipts` is drained now and has no oldest times: `other` had them before and still has an oldest.
    let gone = 2 + 1;
    assert_eq!(scrape.samples.len(), before - gone);
    let folded = scrape.value("delivery_ledger_pending", &[("route", "other"), ("state", "retrying")]);
    assert_eq!(folded, Some(100_000.0));
}

#[test]
fn trial_30_a_route_that_is_removed_leaves_nothing_and_one_that_stays_keeps_its_counts() {
    let before = config(&["receipts", "old"], "acme");
    let bench = Bench::new(&before);
    bench.cell.publish(full(&before));
    let stays = RouteName::new(Channel::Webhook, "receipts");
    let goes = RouteName::new(Channel::Webhook, "old");
    for route in [&stays, &goes] {
        bench.counters.route(route).unwrap().submissions(SubmissionLabel::Accepted).add(5);
    }
    let held = bench.counters.route(&goes).unwrap();
    let after = config(&["receipts"], "acme");
    let mut snapshot = full(&after);
    // The newest reading of the ledger may be older than the reload.
    snapshot.ledgers.get_mut("main").unwrap().pending = Some(reading(&before, false));
    configure(&bench.counters, &after);
    bench.cell.publish(snapshot);
    held.missed_slots.inc();
    let scrape = bench.scrape();
    assert_eq!(scrape.with_label("route", goes.as_str()), 0);
    let kept = [("route", stays.as_str()), ("result", "accepted")];
    assert_eq!(scrape.value("delivery_canary_submissions_total", &kept), Some(5.0));
}

#[test]
fn trial_28_drained_is_explicit_what_was_not_read_is_absent_and_what_was_cut_is_a_lower_bound() {
    let config = config(&["receipts"], "acme");
    let bench = Bench::new(&config);
    let state = [("route", FULL), ("state", "retrying")];
    assert_eq!(bench.scrape().value("delivery_ledger_pending", &state), None, "never read");
    let mut snapshot = full(&config);
    let deadlines = config.routes.iter().map(|r| (r.full_name(), r.deadline.get())).collect();
    snapshot.ledgers.get_mut("main").unwrap().pending =
        Some(PendingSnapshot::fold(instant(0), &deadlines, [], 0, false));
    bench.cell.publish(snapshot.clone());
    let scrape = bench.scrape();
    assert_eq!(scrape.value("delivery_ledger_pending", &state), Some(0.0), "drained");
    assert_eq!(scrape.value("delivery_ledger_pending_over_deadline", &[("route", FULL)]), Some(0.0));
    let oldest = scrape.value("delivery_ledger_oldest_pending_due_timestamp_seconds", &[("route", FULL)]);
    assert_eq!(oldest, None, "the oldest age does not stay after the queue has drained");
    snapshot.ledgers.get_mut("main").unwrap().pending = Some(reading(&config, true));
    bench.cell.publish(snapshot);
    let scrape = bench.scrape();
    assert_eq!(scrape.value("delivery_ledger_pending", &state), Some(3.0), "cut: at least so many");
    assert_eq!(scrape.value("delivery_ledger_pending_over_deadline", &[("route", FULL)]), Some(4.0));
    let oldest = scrape.value("delivery_ledger_oldest_pending_due_timestamp_seconds", &[("route", FULL)]);
    assert_eq!(oldest, Some(1_790_000_000.0 - 400_000.0));
    assert_eq!(scrape.value("delivery_ledger_truncated", &[("ledger", "main")]), Some(1.0));
    let mut snapshot = full(&config);
    let ledger = snapshot.ledgers.get_mut("main").unwrap();
    (ledger.pending, ledger.pending_read_at) = (None, Some(instant(-600)));
    bench.cell.publish(snapshot);
    let scrape = bench.scrape();
    assert_eq!(scrape.value("delivery_ledger_pending", &state), None, "not read any more");
    let read_at = scrape.value("delivery_ledger_snapshot_timestamp_seconds", &[("ledger", "main")]);
    assert_eq!(read_at, Some(1_790_000_000.0 - 600.0), "when it was last read stays known");
}

#[test]
fn values_are_those_of_the_snapshot() {
    let (_, bench) = full_bench();
    let scrape = bench.scrape();
    let here =
        |more: &[(&'static str, &'static str)]| [&[("route", FULL), ("location", "zurich")], more].concat();
    let stopped = |stage| scrape.value("delivery_canary_stopped_at", &here(&[("stage", stage)]));
    assert_eq!((stopped("provider"), stopped("sink")), (Some(1.0), None));
    let window = here(&[("window", "30d"), ("class", "bad")]);
    assert_eq!(scrape.value("delivery_canary_window", &window), Some(7.0));
    let since = here(&[("question", "in_time")]);
    let since = scrape.value("delivery_canary_failing_since_timestamp_seconds", &since);
    assert_eq!(since, Some(1_790_000_000.0 - 600.0));
    assert_eq!(scrape.value("delivery_monitor_clock_skew_seconds", &[("against", "store")]), Some(-1.5));
    let age = |le| scrape.value("delivery_ledger_pending_age_seconds_bucket", &[("route", FULL), ("le", le)]);
    assert_eq!(
        (age("15"), age("120"), age("259200"), age("+Inf")),
        (Some(4.0), Some(7.0), Some(7.0), Some(8.0))
    );
    assert_eq!(scrape.value("delivery_ledger_pending_over_deadline", &[("route", FULL)]), Some(4.0));
    let stage = |le| {
        scrape.value(
            "delivery_canary_stage_seconds_bucket",
            &[("route", FULL), ("stage", "receipt"), ("le", le)],
        )
    };
    assert_eq!((stage("6"), stage("75"), stage("+Inf")), (Some(2.0), Some(3.0), Some(5.0)));
    // Trial 22: a negative duration enters no histogram, and is counted.
    let first =
        scrape.value("delivery_canary_stage_seconds_count", &[("route", FULL), ("stage", "first_attempt")]);
    let negative = scrape.value("delivery_monitor_negative_stages_total", &[("stage", "first_attempt")]);
    assert_eq!((first, negative), (Some(0.0), Some(1.0)));
}

#[test]
fn trial_01_every_submission_that_left_is_in_the_totals_a_timed_out_one_too() {
    let (_, bench) = full_bench();
    let counters = bench.counters.route(&RouteName::from_text(FULL)).unwrap();
    let results = [
        SubmissionResult::Accepted { notification_id: None },
        SubmissionResult::Ambiguous { reason: AmbiguityReason::Timeout },
        SubmissionResult::Refused { reason: RefusalReason::Unreachable },
        SubmissionResult::Refused { reason: RefusalReason::Guard },
    ];
    for label in results.iter().filter_map(SubmissionLabel::of) {
        counters.submissions(label).inc();
    }
    let scrape = bench.scrape();
    let total =
        |result| scrape.value("delivery_canary_submissions_total", &[("route", FULL), ("result", result)]);
    assert_eq!(["accepted", "refused", "unknown"].map(total), [Some(1.0), Some(1.0), Some(2.0)]);
}

#[test]
fn the_adapters_own_counts_come_out_under_their_own_words() {
    let config = config(&["receipts"], "acme");
    let bench = Bench::new(&config);
    let stats = ReceiverStats::default();
    for (n, result) in (1..).zip(ArrivalResult::ALL) {
        (0..n).for_each(|_| stats.count(*result));
    }
    let receiver = bench.counters.receiver("hook").unwrap();
    (0..2).for_each(|_| receiver.follow(&stats));
    let on_stop = bench.counters.on_stop();
    for reason in guard::GuardReason::ALL {
        on_stop(&RouteName::from_text(FULL), reason);
        on_stop(&RouteName::from_text("sms/unheard-of"), reason);
    }
    let figures =
        LedgerFigures { rows_read: 7, unmapped_statuses: 6, refused_times: 5, ..LedgerFigures::default() };
    bench.counters.ledger("main").unwrap().follow(&figures);
    let scrape = bench.scrape();
    for (n, result) in (1..).map(f64::from).zip(ArrivalResult::ALL) {
        let labels = [("receiver", "hook"), ("result", result.word())];
        assert_eq!(scrape.value("delivery_monitor_receipts_total", &labels), Some(n), "{}", result.word());
    }
    for reason in guard::GuardReason::ALL {
        let labels = [("route", FULL), ("reason", reason.word())];
        assert_eq!(scrape.value("delivery_canary_guard_refusals_total", &labels), Some(1.0));
    }
    let of_ledger = |name: &str| scrape.value(name, &[("ledger", "main")]);
    assert_eq!(of_ledger("delivery_ledger_rows_read_total"), Some(7.0));
    assert_eq!(of_ledger("delivery_ledger_unmapped_statuses_total"), Some(6.0));
    assert_eq!(of_ledger("delivery_ledger_refused_times_total"), Some(5.0));
    // A reload makes adapters anew, which begin to count at 0.
    bench
        .counters
        .ledger("main")
        .unwrap()
        .follow(&LedgerFigures { rows_read: 2, ..LedgerFigures::default() });
    let read = bench.scrape().value("delivery_ledger_rows_read_total", &[("ledger", "main")]);
    assert_eq!(read, Some(9.0));
}

#[test]
fn the_checker_finds_what_it_is_for() {
    let bad = [
        ("# TYPE a gauge\na 1\na 2\n", "duplicate"),
        ("# TYPE a gauge\na{x=\"1\"} 1\n# TYPE a gauge\na{x=\"2\"} 2\n", "twice"),
        ("a 1\n", "no family"),
        ("# TYPE a gauge\na NaN\n", "finite"),
        ("# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n", "fall"),
        ("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n", "last bucket"),
        ("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 1\n", "last bucket"),
        ("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n", "no sum"),
    ];
    for (page, why) in bad {
        let fault = Scrape::read(page).expect_err(page);
        assert!(fault.contains(why), "{page} gives {fault}");
    }
}

proptest! {
    #[test]
    fn no_text_of_the_configuration_breaks_the_page(provider in any::<String>()) {
        let config = config(&["receipts"], &provider);
        let bench = Bench::new(&config);
        let scrape = Scrape::read(&bench.page()).unwrap();
        let labels = [("route", FULL), ("channel", "webhook"), ("provider", provider.as_str()), ("volume_class", "unknown")];
        prop_assert_eq!(scrape.value("delivery_route_info", &labels), Some(1.0));
    }

    #[test]
    fn the_top_finite_bound_is_above_the_deadline(millis in 1u64..=90 * 86_400_000) {
        let deadline = Duration::from_millis(millis);
        let bounds = stage_bounds(deadline);
        prop_assert!(bounds.is_sorted_by(|a, b| a < b));
        prop_assert!(bounds.last().unwrap() > &deadline.as_secs_f64());
    }
}

#[test]
fn the_catalog_is_in_order() {
    for entry in FAMILIES {
        let named = family(entry.name).unwrap();
        assert!(std::ptr::eq(named, *entry), "{} is there twice", entry.name);
        assert!(entry.help.ends_with('.'), "{}: the help is a sentence", entry.name);
    }
}

#[test]
fn the_reference_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let made = reference::render();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let held = std::fs::read_to_string(path).unwrap_or_default();
    assert!(held == made, "docs/metrics.md is stale: run this test with UPDATE_GENERATED=1");
}
