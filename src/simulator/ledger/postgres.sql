create table if not exists notifications (
    notification_id uuid primary key,
    idempotency_key text unique,
    request_digest  text not null,
    route           text not null,
    channel         text not null,
    template        text not null,
    is_canary       boolean not null,
    accepted_at     timestamptz not null,
    not_before      timestamptz,
    traceparent     text,
    policy_version  text not null,
    -- Set together with the terminal attempt; the disposition is that attempt's outcome.
    settled_at      timestamptz,
    -- For the workers alone, on the real clock; null when no attempt is to follow.
    next_attempt_at timestamptz,
    leased          boolean not null default false
);

create index if not exists notifications_pending on notifications (accepted_at, route) where settled_at is null;
create index if not exists notifications_due on notifications (next_attempt_at)
    where settled_at is null and not leased and next_attempt_at is not null;
create index if not exists notifications_leased on notifications (notification_id) where leased;
create index if not exists notifications_by_time on notifications (accepted_at, notification_id);

-- Whom and what: kept apart, so that a reader of the ledger needs no right to it.
create table if not exists messages (
    notification_id uuid primary key references notifications (notification_id),
    body            text not null
);

create table if not exists delivery_attempts (
    attempt_id      uuid primary key,
    notification_id uuid not null references notifications (notification_id),
    attempt_number  integer not null,
    outcome         text not null
        check (outcome in ('delivered', 'retryable', 'permanent_rejection', 'suppressed', 'unknown')),
    provider_code   text not null,
    started_at      timestamptz not null,
    ended_at        timestamptz not null,
    policy_version  text,
    unique (notification_id, attempt_number)
);

create index if not exists delivery_attempts_by_time on delivery_attempts (ended_at, attempt_id);

create or replace function attempts_are_only_appended() returns trigger language plpgsql as
$$ begin raise exception 'attempts are only appended'; end $$;
create or replace trigger delivery_attempts_never_change before update or delete on delivery_attempts
    for each row execute function attempts_are_only_appended();
