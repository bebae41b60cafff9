-- Times are ISO 8601 text in UTC with milliseconds, so that their order as text is their order in time.

create table if not exists notifications (
    notification_id text primary key,
    idempotency_key text unique,
    request_digest  text not null,
    route           text not null,
    channel         text not null,
    template        text not null,
    is_canary       integer not null check (is_canary in (0, 1)),
    accepted_at     text not null,
    not_before      text,
    traceparent     text,
    policy_version  text not null,
    -- Set together with the terminal attempt; the disposition is that attempt's outcome.
    settled_at      text,
    -- For the workers alone, on the real clock; null when no attempt is to follow.
    next_attempt_at text,
    leased          integer not null default 0 check (leased in (0, 1))
) strict;

create index if not exists notifications_pending on notifications (accepted_at, route) where settled_at is null;
create index if not exists notifications_due on notifications (next_attempt_at)
    where settled_at is null and leased = 0 and next_attempt_at is not null;
create index if not exists notifications_leased on notifications (notification_id) where leased = 1;
create index if not exists notifications_by_time on notifications (accepted_at, notification_id);

-- Whom and what: kept apart, so that a reader of the ledger needs no right to it.
create table if not exists messages (
    notification_id text primary key references notifications (notification_id),
    body            text not null
) strict;

create table if not exists delivery_attempts (
    attempt_id      text primary key,
    notification_id text not null references notifications (notification_id),
    attempt_number  integer not null,
    outcome         text not null
        check (outcome in ('delivered', 'retryable', 'permanent_rejection', 'suppressed', 'unknown')),
    provider_code   text not null,
    started_at      text not null,
    ended_at        text not null,
    policy_version  text,
    unique (notification_id, attempt_number)
) strict;

create index if not exists delivery_attempts_by_time on delivery_attempts (ended_at, attempt_id);

create trigger if not exists delivery_attempts_never_change before update on delivery_attempts
begin select raise(abort, 'attempts are only appended'); end;
create trigger if not exists delivery_attempts_never_go before delete on delivery_attempts
begin select raise(abort, 'attempts are only appended'); end;
