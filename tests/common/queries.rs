//! Queries of the simulator's ledger, as the lines of a block `sql: |` of a configuration.

/// The attempts of notifications, up to the condition.
pub const LOOKUP: &str = "\
        select n.notification_id, n.idempotency_key, n.route, n.accepted_at, n.not_before, a.attempt_id, a.outcome, a.started_at, a.policy_version
        from notifications n left join delivery_attempts a on a.notification_id = n.notification_id";

/// What is pending, up to its last condition.
pub const PENDING: &str = "\
        select n.route, n.accepted_at, n.not_before,
               (select a.outcome from delivery_attempts a where a.notification_id = n.notification_id
                order by a.attempt_number desc limit 1) as outcome
        from notifications n where n.settled_at is null";

/// The stream of notifications.
pub const NOTIFICATIONS: &str = "\
        select n.notification_id, n.route, n.accepted_at, n.not_before, n.is_canary
        from notifications n
        where (n.accepted_at, n.notification_id) > (:after_ts, :after_id)
        order by n.accepted_at, n.notification_id
        limit :limit";

/// The stream of attempts.
pub const ATTEMPTS: &str = "\
        select a.attempt_id, a.notification_id, a.outcome, a.started_at, a.ended_at
        from delivery_attempts a
        where (a.ended_at, a.attempt_id) > (:after_ts, :after_id)
        order by a.ended_at, a.attempt_id
        limit :limit";
