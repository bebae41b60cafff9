//! The names that columns and tables of such services usually have, the likeliest first.

/// Idempotency keys: the first five mean nothing else.
pub const KEYS: [&str; 9] = [
    "idempotency_key",
    "idempotence_key",
    "idempotency",
    "dedup_key",
    "dedupe_key",
    "request_id",
    "client_reference",
    "reference",
    "ref",
];
/// Words for the route.
pub const ROUTES: [&str; 13] = [
    "route",
    "notification_type",
    "message_type",
    "event_type",
    "template",
    "template_name",
    "topic",
    "kind",
    "queue",
    "category",
    "purpose",
    "type",
    "channel",
];
/// Marks of canaries: the first two mean nothing else.
pub const CANARIES: [&str; 7] =
    ["is_canary", "canary", "is_probe", "probe", "is_synthetic", "synthetic", "is_test"];
/// Times of acceptance: the first three mean nothing else.
pub const ACCEPTED: [&str; 13] = [
    "accepted_at",
    "received_at",
    "submitted_at",
    "created_at",
    "enqueued_at",
    "queued_at",
    "requested_at",
    "inserted_at",
    "created",
    "created_on",
    "creation_time",
    "created_time",
    "date_created",
];
/// Times before which nothing goes out: the first five mean nothing else.
pub const NOT_BEFORE: [&str; 13] = [
    "not_before",
    "send_after",
    "deliver_after",
    "scheduled_at",
    "scheduled_for",
    "send_at",
    "send_on",
    "run_at",
    "available_at",
    "visible_at",
    "deliver_at",
    "due_at",
    "scheduled_time",
];
/// Statuses.
pub const STATUSES: [&str; 12] = [
    "outcome",
    "status",
    "state",
    "result",
    "disposition",
    "delivery_status",
    "status_id",
    "status_code",
    "code",
    "succeeded",
    "success",
    "is_success",
];
/// What says that a notification is settled.
pub const SETTLED: [&str; 9] = [
    "settled_at",
    "is_settled",
    "settled",
    "completed_at",
    "finished_at",
    "done",
    "is_done",
    "processed_at",
    "closed_at",
];
/// Marks of deletion.
pub const DELETED: [&str; 4] = ["deleted_at", "is_deleted", "deleted", "removed_at"];
/// Destinations. The last may hold an address.
pub const DESTINATIONS: [&str; 9] = [
    "endpoint",
    "endpoint_id",
    "destination_id",
    "target_id",
    "device_id",
    "subscription_id",
    "subscriber_id",
    "webhook_id",
    "destination",
];
/// Times at which an attempt began: the first three mean nothing else.
pub const STARTED: [&str; 15] = [
    "started_at",
    "attempted_at",
    "begun",
    "began_at",
    "begun_at",
    "tried_at",
    "start_time",
    "called_at",
    "created_at",
    "created",
    "at",
    "occurred_at",
    "inserted_at",
    "timestamp",
    "attempt_time",
];
/// Times at which an attempt ended.
pub const ENDED: [&str; 8] =
    ["ended_at", "ended", "finished_at", "finished", "completed_at", "end_time", "done_at", "closed_at"];
/// Times at which the next attempt is planned.
pub const NEXT: [&str; 6] =
    ["next_attempt_at", "next_try_at", "next_retry_at", "retry_at", "next_attempt", "next_run_at"];
/// Times that are there once it was sent.
pub const SENT: [&str; 4] = ["delivered_at", "sent_at", "succeeded_at", "success_at"];
/// Times that are there once it failed.
pub const FAILED: [&str; 4] = ["failed_at", "error_at", "rejected_at", "failure_at"];
/// Marks of dead addresses.
pub const DEAD: [&str; 5] = ["is_dead_address", "is_bounce", "is_hard_bounce", "bounced", "is_permanent"];
/// Versions of the policy.
pub const POLICIES: [&str; 3] = ["policy_version", "routing_version", "policy_id"];
/// What tables of notifications are named after.
pub const NOTIFICATION_TABLES: [&str; 8] =
    ["notification", "message", "notice", "event", "mail", "email", "job", "sms"];
/// Parts of the names of tables of attempts.
pub const ATTEMPT_TABLES: [&str; 9] =
    ["attempt", "tries", "try", "deliver", "sending", "call", "run", "send", "dispatch"];

/// Parts of the names of columns that identify people: what only its type speaks for is none of these.
pub const PERSONAL: [&str; 10] =
    ["mail", "phone", "msisdn", "address", "recipient", "person", "user", "customer", "iban", "name"];
