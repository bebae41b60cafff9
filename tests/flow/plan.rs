//! What is drawn at random: what happens to each notification of a model ledger, and when the follower looks.

use super::model::{Ledger, Version, at};
use delivery_canary::domain::{
    flow::rows::{AttemptRow, LedgerId, NotificationRow, RouteNo, Standing, UnitId},
    pending::Tried,
};
use proptest::{collection::vec, option, prelude::*};

/// How late a commit may become visible, in seconds.
pub const OVERLAP: i64 = 30;
const NEVER: i64 = i64::MAX;

#[derive(Clone, Debug)]
pub struct Notification {
    route: u16,
    accepted: i64,
    hold: i64,
    commit: i64,
    /// Its own status changes from pending to this, after so long; nothing where the ledger has no status.
    own: Option<(i64, Standing)>,
    attempts: Vec<Attempt>,
    fate: Fate,
    kind: Kind,
    leaves_by: Option<Leaving>,
}

/// How the rows of a notification leave the tables that the streams read, once nothing is to come of it any more and it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Into an archive, pending or not.
    Archived,
    /// For good, once it is settled.
    Expired,
}

#[derive(Clone, Debug)]
struct Attempt {
    delay: i64,
    /// How long after its start its row was made: its place in the stream.
    lag: i64,
    commit: i64,
    leaves: Standing,
    /// While it is open: rewritten to this, or removed.
    change: Option<(i64, Option<Standing>)>,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Stays,
    /// It is removed while it is open.
    Removed(i64),
    /// If nothing ever settles it, it is removed whenever.
    RemovedLate(i64),
    /// If nothing settles it, one of its attempts is rewritten (or removed) whenever.
    Rewritten(i64, Option<Standing>),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Customer,
    Marked,
    ByKey,
    ById,
}

/// One pass of the follower.
#[derive(Clone, Debug)]
pub struct Pass {
    pub gap: i64,
    /// Seconds between its first reading, its second, and its lookups.
    pub pauses: (i64, i64),
    pub is_attempts_first: bool,
    pub limit: usize,
    pub are_lookups_answered: bool,
    pub crash: Crash,
    /// Our clock, less the right one.
    pub our_clock: i64,
}

/// All that happens.
#[derive(Clone, Debug)]
pub struct Plan {
    pub notifications: Vec<Notification>,
    pub passes: Vec<Pass>,
    /// The database's clock, less the right one. The service writes the times of its rows by the right one.
    pub database_clock: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    No,
    AmongRows,
    BeforeWriting,
    AfterWriting,
    /// Another process takes the lead in the middle, makes a pass of its own, and this one takes the lead back.
    LeadLost,
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        3 => Just(Standing::Pending(Tried::WillRetry)),
        2 => Just(Standing::Pending(Tried::OutcomeUnknown)),
        3 => Just(Standing::Delivered),
        1 => Just(Standing::RejectedRecipient),
        1 => Just(Standing::RejectedService),
        1 => Just(Standing::Suppressed),
    ]
}

fn delay() -> impl Strategy<Value = i64> {
    // Few different values, so that times are often equal.
    prop_oneof![4 => -3_i64..4, 3 => 0_i64..40, 2 => 0_i64..3_000]
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let change = prop_oneof![
        6 => Just(None),
        2 => (0..=OVERLAP, standing()).prop_map(|(after, leaves)| Some((after, Some(leaves)))),
        1 => (0..=OVERLAP).prop_map(|after| Some((after, None))),
    ];
    (delay(), prop_oneof![Just(0_i64), 0_i64..5], 0..=OVERLAP, standing(), change)
        .prop_map(|(delay, lag, commit, leaves, change)| Attempt { delay, lag, commit, leaves, change })
}

fn notification() -> impl Strategy<Value = Notification> {
    let fate = prop_oneof![
        6 => Just(Fate::Stays),
        1 => (0..=OVERLAP).prop_map(Fate::Removed),
        1 => (0_i64..3_000).prop_map(Fate::RemovedLate),
        2 => (0_i64..3_000, option::weighted(0.8, standing())).prop_map(|(after, to)| Fate::Rewritten(after, to)),
    ];
    let kind = prop_oneof![12 => Just(Kind::Customer), 1 => Just(Kind::Marked), 1 => Just(Kind::ByKey), 1 => Just(Kind::ById)];
    let hold = prop_oneof![3 => Just(0_i64), 1 => 0_i64..2_000];
    let own = option::weighted(0.2, (0_i64..3_000, standing()));
    let leaves_by =
        prop_oneof![4 => Just(None), 1 => Just(Some(Leaving::Archived)), 1 => Just(Some(Leaving::Expired))];
    (0_u16..4, 0_i64..7_200, hold, 0..=OVERLAP, own, vec(attempt(), 0..5), fate, (kind, leaves_by)).prop_map(
        |(route, accepted, hold, commit, own, attempts, fate, (kind, leaves_by))| Notification {
            route,
            accepted,
            hold,
            commit,
            own,
            attempts,
            fate,
            kind,
            leaves_by,
        },
    )
}

fn pass() -> impl Strategy<Value = Pass> {
    let gap = prop_oneof![2 => 0_i64..30, 2 => 0_i64..400, 1 => 0_i64..3_000];
    let crash = prop_oneof![
        6 => Just(Crash::No),
        1 => Just(Crash::AmongRows),
        1 => Just(Crash::BeforeWriting),
        1 => Just(Crash::AfterWriting),
        1 => Just(Crash::LeadLost),
    ];
    let our_clock = prop_oneof![
        8 => Just(0_i64), 1 => -3_i64..=3, 1 => Just(36_000_i64), 1 => Just(2_764_800_i64), 1 => Just(-3_600_i64),
    ];
    let limit = prop_oneof![3 => Just(usize::MAX), 1 => 1_usize..6];
    (gap, (0_i64..12, 0_i64..12), any::<bool>(), limit, any::<bool>(), crash, our_clock).prop_map(
        |(gap, pauses, is_attempts_first, limit, are_lookups_answered, crash, our_clock)| Pass {
            gap,
            pauses,
            is_attempts_first,
            limit,
            are_lookups_answered,
            crash,
            our_clock,
        },
    )
}

pub fn plan() -> impl Strategy<Value = Plan> {
    let database_clock =
        prop_oneof![3 => Just(0_i64), 1 => Just(120_i64), 1 => Just(-120_i64), 1 => -5_i64..5];
    (vec(notification(), 1..14), vec(pass(), 0..60), database_clock).prop_map(
        |(notifications, mut passes, database_clock)| {
            for pass in &mut passes {
                // One of the two clocks is right, or behind: where both are ahead, nothing is claimed.
                pass.our_clock = if database_clock > 0 { pass.our_clock.min(0) } else { pass.our_clock };
            }
            Plan { notifications, passes, database_clock }
        },
    )
}

/// How each notification's rows leave, if they do.
pub fn leaving(plan: &[Notification]) -> Vec<(UnitId, Leaving)> {
    let all =
        (0..).zip(plan).filter_map(|(number, notification)| Some((unit_of(number), notification.leaves_by?)));
    all.collect()
}

fn unit_of(number: i64) -> UnitId {
    let notification = match number % 3 {
        0 => LedgerId::Int(number),
        1 => LedgerId::Uuid([u8::try_from(number).unwrap(); 16]),
        _ => LedgerId::Text(format!("n-{number}").into()),
    };
    UnitId { notification, destination: (number % 4 == 0).then(|| "one:two".into()) }
}

/// The ledger in which all of this happens.
pub fn ledger(plan: &[Notification]) -> Ledger {
    let mut ledger = Ledger::default();
    for (number, notification) in (0..).zip(plan) {
        write(&mut ledger, number, notification);
    }
    let notifications = ledger.notifications.iter().flat_map(|version| [version.from, version.until]);
    let attempts = ledger.attempts.iter().flat_map(|version| [version.from, version.until]);
    ledger.quiet_from = notifications.chain(attempts).filter(|second| *second != NEVER).max().unwrap_or(0);
    ledger
}

fn write(ledger: &mut Ledger, number: i64, plan: &Notification) {
    let unit = unit_of(number);
    let visible = plan.accepted + plan.commit;
    let own_at = plan.own.map_or(NEVER, |(after, _)| visible + after);
    let settles = plan.own.is_some_and(|(_, standing)| standing.is_terminal())
        || plan.attempts.iter().any(|attempt| {
            attempt.leaves.is_terminal() || matches!(attempt.change, Some((_, Some(to))) if to.is_terminal())
        });
    let first =
        plan.attempts.iter().map(|attempt| plan.accepted + attempt.delay).min().unwrap_or(plan.accepted);
    let gone = match plan.fate {
        Fate::Removed(after) => (visible + after).min(plan.accepted.min(first) + OVERLAP),
        Fate::RemovedLate(after) if !settles => {
            ledger.has_rewritten_attempts = true;
            visible + after
        }
        _ => NEVER,
    };
    ledger.has_removed_notifications |= gone != NEVER;
    let row = |own| NotificationRow {
        unit: unit.clone(),
        route: RouteNo(plan.route),
        due: at(plan.accepted + plan.hold),
        own,
        is_marked_canary: matches!(plan.kind, Kind::Marked),
        has_canary_key: matches!(plan.kind, Kind::ByKey),
    };
    if !matches!(plan.kind, Kind::Customer) {
        ledger.canaries.push(unit.clone());
    }
    let own = plan.own.map(|_| Standing::Pending(Tried::Never));
    let cursor = (plan.accepted, number);
    let mut versions = vec![Version { cursor, from: visible, until: own_at.min(gone), row: row(own) }];
    if let Some((_, standing)) = plan.own {
        versions.push(Version { cursor, from: own_at, until: gone, row: row(Some(standing)) });
    }
    ledger.notifications.extend(versions.into_iter().filter(|version| version.from < version.until));
    for (place, attempt) in (0..).zip(&plan.attempts) {
        let started = plan.accepted + attempt.delay;
        let attempt_id = (place * 7_919 + number * 104_729) % 1_000_003;
        let made = started + attempt.lag;
        let cursor = (made, attempt_id);
        let row = |leaves| AttemptRow {
            attempt: LedgerId::Int(attempt_id),
            unit: unit.clone(),
            at: at(started),
            leaves,
        };
        let from = made + attempt.commit;
        let mut versions = Vec::new();
        match (attempt.change, plan.fate) {
            (_, Fate::Rewritten(after, to)) if !settles && place == 0 => {
                ledger.has_rewritten_attempts = true;
                versions.push(Version { cursor, from, until: from + after, row: row(attempt.leaves) });
                versions.extend(to.map(|to| Version {
                    cursor,
                    from: from + after,
                    until: NEVER,
                    row: row(to),
                }));
            }
            (Some((after, to)), _) => {
                let changed = (from + after).min(made + OVERLAP);
                versions.push(Version { cursor, from, until: changed, row: row(attempt.leaves) });
                versions.extend(to.map(|to| Version { cursor, from: changed, until: NEVER, row: row(to) }));
            }
            (None, _) => versions.push(Version { cursor, from, until: NEVER, row: row(attempt.leaves) }),
        }
        versions.iter_mut().for_each(|version| version.until = version.until.min(gone));
        ledger.attempts.extend(versions.into_iter().filter(|version| version.from < version.until));
    }
}
