//! The table of all families. The doc comment of each is its help text.

use super::{Family, Kind, Label, Unit};

macro_rules! families {
    (@absent) => { None };
    (@absent $when:literal) => { Some($when) };
    ($(
        #[doc = $help:literal]
        $ident:ident = $kind:ident $name:literal [$($label:ident),*] in $unit:ident $(absent $when:literal)?;
    )+) => {
        $(
            #[doc = $help]
            pub static $ident: Family = Family {
                name: $name,
                kind: Kind::$kind,
                labels: &[$(Label::$label),*],
                unit: Unit::$unit,
                help: $help.trim_ascii(),
                absent_when: families!(@absent $($when)?),
            };
        )+

        /// All families, in the order of this table.
        pub static FAMILIES: &[&Family] = &[$(&$ident),+];
    };
}

families! {
    /// Time between two scheduled canaries of the route.
    CANARY_INTERVAL = Gauge "delivery_canary_interval_seconds" [Route] in Seconds;
    /// When the newest canary was submitted.
    CANARY_LAST_SUBMIT = Gauge "delivery_canary_last_submit_timestamp_seconds" [Route, Location] in Timestamp absent "none was submitted yet";
    /// When the newest canary arrived whole.
    CANARY_LAST_ARRIVAL = Gauge "delivery_canary_last_arrival_timestamp_seconds" [Route, Location] in Timestamp absent "none arrived yet";
    /// Slot that was due more than a minute ago, and since which no canary was submitted: the first such.
    CANARY_OVERDUE_SLOT = Gauge "delivery_canary_overdue_slot_timestamp_seconds" [Route, Location] in Timestamp absent "a canary was submitted since the newest slot, or sending is paused";
    /// Canaries in a row, up to the newest, that did not arrive.
    CANARY_CONSECUTIVE_FAILURES = Gauge "delivery_canary_consecutive_failures" [Route, Location] in Count absent "what settled was not read from the store yet";
    /// Evidence that canaries do not arrive, or not in time: 5 is a hundred thousand to one. It is at the route's bound only if the failing has lasted `sustain`: a page is due.
    CANARY_FAILURE_EVIDENCE = Gauge "delivery_canary_failure_evidence" [Route, Location, Question] in PowersOfTen absent "what settled was not read from the store yet";
    /// Slot of the first failure since there was no evidence of failure.
    CANARY_FAILING_SINCE = Gauge "delivery_canary_failing_since_timestamp_seconds" [Route, Location, Question] in Timestamp absent "there is no evidence of failure";
    /// 1 for the stage at which the newest failure stopped.
    CANARY_STOPPED_AT = Gauge "delivery_canary_stopped_at" [Route, Location, StoppedAt] in Flag absent "there is no evidence of failure, and for all stages but that one";
    /// Slot of the first of three or more canaries in a row, up to the newest, that were neither a success nor a failure, by what became of the newest: what the evidence says is from before them.
    CANARY_UNMEASURED_SINCE = Gauge "delivery_canary_unmeasured_since_timestamp_seconds" [Route, Location, OutsideVerdict] in Timestamp absent "one of the newest three canaries was a success or a failure";
    /// Scheduled canaries first settled within the window, by class.
    CANARY_WINDOW = Gauge "delivery_canary_window" [Route, Location, Window, Class] in Count;
    /// Scheduled canaries first settled within the last day, by verdict in force.
    CANARY_VERDICTS = Gauge "delivery_canary_verdicts" [Route, Location, Verdict] in Count;
    /// Canaries of a control arm first settled within the last hour that were good, and that were bad.
    CANARY_CONTROLS = Gauge "delivery_canary_controls" [Route, Location, Arm, ArmClass] in Count absent "none of that arm and class was settled within the hour";
    /// Canaries without a verdict.
    CANARY_IN_FLIGHT = Gauge "delivery_canary_in_flight" [Route, Location] in Count;
    /// Slot of the oldest canary without a verdict.
    CANARY_OLDEST_IN_FLIGHT = Gauge "delivery_canary_oldest_in_flight_timestamp_seconds" [Route, Location] in Timestamp absent "none is in flight";
    /// Time that canaries which arrived took to a stage; failures never enter it.
    CANARY_STAGE = Histogram "delivery_canary_stage_seconds" [Route, Stage] in Seconds;
    /// Contradictions between API, ledger and sink found within the last day.
    CANARY_DISAGREEMENTS = Gauge "delivery_canary_disagreements" [Route, Disagreement] in Count absent "no contradiction of that kind was found within the last day";
    /// Submissions by this process, by what came of them; repeats under one key count each.
    CANARY_SUBMISSIONS = Counter "delivery_canary_submissions_total" [Route, Submission] in Count;
    /// Slots that this process did not send in time, because it was down, too late, or at its cap.
    CANARY_MISSED_SLOTS = Counter "delivery_canary_missed_slots_total" [Route] in Count;
    /// Requests that the guard stopped before they left.
    CANARY_GUARD_REFUSALS = Counter "delivery_canary_guard_refusals_total" [Route, GuardReason] in Count;
    /// 1 while sending is paused.
    CANARY_PAUSED = Gauge "delivery_canary_paused" [Route] in Flag;
    /// 1 while planned work mutes the pages of the route.
    CANARY_MAINTENANCE = Gauge "delivery_canary_maintenance" [Route] in Flag;

    /// How long after acceptance a notification must have arrived.
    ROUTE_DEADLINE = Gauge "delivery_route_deadline_seconds" [Route] in Seconds;
    /// Share of notifications that must arrive in time.
    ROUTE_OBJECTIVE = Gauge "delivery_route_objective_ratio" [Route] in Ratio;
    /// Facts about the route, as labels.
    ROUTE_INFO = Gauge "delivery_route_info" [Route, Channel, Provider, VolumeClass] in Info;

    /// When the last good reading of the pending was taken.
    LEDGER_SNAPSHOT = Gauge "delivery_ledger_snapshot_timestamp_seconds" [Ledger] in Timestamp absent "the pending was never read";
    /// Pending notifications in the last good reading, by state; at least so many while `delivery_ledger_truncated` is 1.
    LEDGER_PENDING = Gauge "delivery_ledger_pending" [Route, PendingState] in Count absent "the pending was never read";
    /// Ages of the pending that are due in the last good reading, or of some while `delivery_ledger_truncated` is 1; a snapshot, not for rate().
    LEDGER_PENDING_AGE = Histogram "delivery_ledger_pending_age_seconds" [Route] in Seconds absent "the pending was never read";
    /// Pending notifications past the deadline of the route: an exact count, and at least so many while `delivery_ledger_truncated` is 1.
    LEDGER_PENDING_OVER_DEADLINE = Gauge "delivery_ledger_pending_over_deadline" [Route] in Count absent "the pending was never read, or the route is `other`";
    /// Due time of the oldest pending notification that is due; it may be an older one while `delivery_ledger_truncated` is 1.
    LEDGER_OLDEST_PENDING_DUE = Gauge "delivery_ledger_oldest_pending_due_timestamp_seconds" [Route] in Timestamp absent "nothing due is pending, or as for `delivery_ledger_pending`";
    /// Due time of the oldest notification whose newest attempt is unknown; it may be an older one while `delivery_ledger_truncated` is 1.
    LEDGER_OLDEST_UNKNOWN = Gauge "delivery_ledger_oldest_unknown_timestamp_seconds" [Route] in Timestamp absent "none is unknown, or as for `delivery_ledger_pending`";
    /// Notifications accepted over real traffic, whose due time lies within the window that ended one deadline ago.
    LEDGER_WINDOW_ACCEPTED = Gauge "delivery_ledger_window_accepted" [Route, LedgerWindow] in Count absent "the ledger is not followed, or not yet caught up with";
    /// Those of them that were rejected for a `service` cause, or are pending past the deadline.
    LEDGER_WINDOW_BAD = Gauge "delivery_ledger_window_bad" [Route, LedgerWindow] in Count absent "as for `delivery_ledger_window_accepted`";
    /// Those of them by where they stand now; the four make up the accepted.
    LEDGER_WINDOW_NOTIFICATIONS = Gauge "delivery_ledger_window_notifications" [Route, DispositionWindow, Disposition] in Count absent "as for `delivery_ledger_window_accepted`";
    /// Those of them that were rejected for good, by cause.
    LEDGER_WINDOW_REJECTED = Gauge "delivery_ledger_window_rejected" [Route, CauseWindow, Cause] in Count absent "as for `delivery_ledger_window_accepted`";
    /// Attempts that started within the window, by outcome.
    LEDGER_WINDOW_ATTEMPTS = Gauge "delivery_ledger_window_attempts" [Route, AttemptWindow, Outcome] in Count absent "as for `delivery_ledger_window_accepted`";
    /// Notifications due in the last closed hour on whose place the follower and an exact count do not agree.
    LEDGER_RESIDUE = Gauge "delivery_ledger_residue" [Route] in Count absent "no exact count is configured, none was taken yet, or the newest one failed";
    /// Notifications due in the last closed hour by the exact count that `delivery_ledger_residue` comes from.
    LEDGER_COUNTED = Gauge "delivery_ledger_counted" [Route] in Count absent "as for `delivery_ledger_residue`";
    /// Notifications that were accepted in the last closed hour by a count that is independent of the ledger: at least so many.
    LEDGER_ACCEPTED_ELSEWHERE = Gauge "delivery_ledger_accepted_elsewhere" [Route] in Count absent "no `accepted_elsewhere` is configured, or what it came to in that hour is not known for certain";
    /// The ledger's own count of the same. What `delivery_ledger_accepted_elsewhere` has more was accepted and never written.
    LEDGER_ACCEPTED_HERE = Gauge "delivery_ledger_accepted_here" [Route] in Count absent "as for `delivery_ledger_accepted_elsewhere`";
    /// Pending notifications that were due before the baseline, or before the history that is followed, where the pending query tells those: stuck when the monitor came.
    LEDGER_STUCK_BEFORE_BASELINE = Gauge "delivery_ledger_stuck_before_baseline" [Route] in Count absent "neither a baseline nor a `pending` query is configured, or as for `delivery_ledger_window_accepted`";
    /// Canaries that came by as customers' notifications, and were left out of the numbers, since this process follows.
    LEDGER_CANARY_LEAKS = Gauge "delivery_ledger_canary_leaks" [Route] in Count absent "the ledger is not followed, or not yet caught up with";
    /// Pending notifications whose rows came behind the cursor, and were found all the same, since this process follows.
    LEDGER_DATED_BACK = Gauge "delivery_ledger_dated_back" [Ledger] in Count absent "the ledger is not followed, or not yet caught up with";
    /// 1 for what the follower of the ledger does now.
    LEDGER_FOLLOWER = Gauge "delivery_ledger_follower" [Ledger, FollowerMode] in Flag;
    /// Time of the newest row that is surely followed: while history is read, how far it has come.
    LEDGER_FOLLOWED_UNTIL = Gauge "delivery_ledger_followed_until_timestamp_seconds" [Ledger] in Timestamp absent "the ledger is not followed, or its cursor has no time";
    /// Notifications that are held in memory because they are pending, or new.
    LEDGER_FOLLOWED_NOTIFICATIONS = Gauge "delivery_ledger_followed_notifications" [Ledger] in Count absent "the ledger is not followed by this process";
    /// Pending notifications of closed hours that the ledger counts, and that the follower has not found.
    LEDGER_PENDING_UNSEEN = Gauge "delivery_ledger_pending_unseen" [Ledger] in Count absent "the ledger is not followed by this process, or nothing was looked for yet";
    /// 1 if the windows have what is settled as it was first decided: the ledger has no stream of attempts, so that a later change, such as a late bounce, is in no row that is read.
    LEDGER_AS_FIRST_DECIDED = Gauge "delivery_ledger_as_first_decided" [Ledger] in Flag absent "the ledger is not followed";
    /// Changes of the ledger's history that it does not allow, found within the last day in a sample of notifications and on canaries.
    LEDGER_HISTORY_VIOLATIONS = Gauge "delivery_ledger_history_violations" [Ledger, HistoryChange] in Count;
    /// Those of them that were found in the sample; they are a share of `delivery_ledger_history_compared`.
    LEDGER_HISTORY_IN_SAMPLE = Gauge "delivery_ledger_history_violations_in_sample" [Ledger] in Count;
    /// Late bounces found within the last day in the same sample: delivered, then rejected because of the recipient, which is allowed.
    LEDGER_LATE_REVERSALS = Gauge "delivery_ledger_late_reversals" [Ledger] in Count;
    /// How often within the last day a notification of the sample was held against what was seen of it before; while it is 0, no violation tells nothing.
    LEDGER_HISTORY_COMPARED = Gauge "delivery_ledger_history_compared" [Ledger] in Count;
    /// Notifications of the sample that were due to be read again when the last refresh had ended: the audit is behind by as much.
    LEDGER_HISTORY_OVERDUE = Gauge "delivery_ledger_history_overdue" [Ledger] in Count absent "the ledger is not followed by this process, or `audit.sample` is 0";

    /// Rows of the last good reading whose route is not configured; their notifications are under the route `other`.
    LEDGER_FOLDED_ROUTES = Gauge "delivery_ledger_folded_routes" [Ledger] in Count absent "the pending was never read";
    /// 1 if the last good reading of the pending was cut at its row limit: what it counted is pending, and there may be more of it and older ones.
    LEDGER_TRUNCATED = Gauge "delivery_ledger_truncated" [Ledger] in Flag absent "the pending was never read";
    /// 1 if the role that reads the ledger could write to it.
    LEDGER_ROLE_CAN_WRITE = Gauge "delivery_ledger_role_can_write" [Ledger] in Flag absent "the role's rights were never read";
    /// How far the ledger's replica is behind.
    LEDGER_LAG = Gauge "delivery_ledger_lag_seconds" [Ledger] in Seconds absent "it was never measured, or can't be";
    /// Time that readings of the ledger took, failed ones included.
    LEDGER_READ = Histogram "delivery_ledger_read_seconds" [Ledger] in Seconds;
    /// Rows read from the ledger.
    LEDGER_ROWS_READ = Counter "delivery_ledger_rows_read_total" [Ledger] in Count;
    /// Rows whose status is not in the status table, and so unknown.
    LEDGER_UNMAPPED_STATUSES = Counter "delivery_ledger_unmapped_statuses_total" [Ledger] in Count;
    /// Times in the ledger that were missing or absurd, and so refused.
    LEDGER_REFUSED_TIMES = Counter "delivery_ledger_refused_times_total" [Ledger] in Count;

    /// 1 if each reading of the ledger works, or messages to ourselves reach the receiver: while not, the monitor is blind there.
    MONITOR_OBSERVER_UP = Gauge "delivery_monitor_observer_up" [Observer] in Flag;
    /// When an iteration of the loop last ended without an error.
    MONITOR_LOOP_LAST_SUCCESS = Gauge "delivery_monitor_loop_last_success_timestamp_seconds" [Loop] in Timestamp absent "no iteration has succeeded yet";
    /// When what is shown here was put together: each second, also while the store is down.
    MONITOR_SNAPSHOT = Gauge "delivery_monitor_snapshot_timestamp_seconds" [] in Timestamp absent "nothing was looked at yet";
    /// How far another clock is ahead: the store's of this machine's, a ledger's of the time by which the monitor goes.
    MONITOR_CLOCK_SKEW = Gauge "delivery_monitor_clock_skew_seconds" [Clock] in Seconds absent "it was never measured";
    /// Stage durations that came out negative, and so were not counted in a histogram: two clocks disagree.
    MONITOR_NEGATIVE_STAGES = Counter "delivery_monitor_negative_stages_total" [Stage] in Count;
    /// Requests to a receiver, by what came of them.
    MONITOR_RECEIPTS = Counter "delivery_monitor_receipts_total" [Receiver, ReceiptResult] in Count;
    /// 1 if the store can be used now.
    MONITOR_STORE_UP = Gauge "delivery_monitor_store_up" [] in Flag;
    /// 1 if the newest configuration is in force; 0 if it was refused and the one before is kept.
    MONITOR_RELOAD_SUCCESSFUL = Gauge "delivery_monitor_config_last_reload_successful" [] in Flag;
    /// When a configuration was last taken into force.
    MONITOR_RELOAD_SUCCESS_TIME = Gauge "delivery_monitor_config_last_reload_success_timestamp_seconds" [] in Timestamp absent "none was taken yet";
    /// The hash of the configuration in force; rules carry the hash of the one that they were made from.
    MONITOR_CONFIG_HASH = Gauge "delivery_monitor_config_hash" [] in Hash;
    /// The running build.
    MONITOR_BUILD_INFO = Gauge "delivery_monitor_build_info" [Version, Revision] in Info;
}

/// What the `prometheus` crate says of the process itself, by its own names. Linux only.
pub const PROCESS_FAMILIES: [&str; 7] = [
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_virtual_memory_bytes",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_threads",
];
