-- Times are microseconds since 1970, durations milliseconds, truth values 0 and 1. docs/data.md says what each field is.

CREATE TABLE canary (
    canary_id TEXT NOT NULL PRIMARY KEY,
    idempotency_key TEXT NOT NULL UNIQUE,
    route TEXT NOT NULL,
    location TEXT NOT NULL,
    kind TEXT NOT NULL,
    slot BIGINT NOT NULL,
    planned_at BIGINT NOT NULL,
    deadline_ms BIGINT NOT NULL,
    settle_ms BIGINT NOT NULL,
    follow_for_ms BIGINT NOT NULL,
    ledger_overlap_ms BIGINT NOT NULL,
    expected_end TEXT NOT NULL,
    has_ledger BIGINT NOT NULL,
    traceparent TEXT NOT NULL,
    parent TEXT,
    version BIGINT NOT NULL,
    receipts BIGINT NOT NULL,
    next_look BIGINT,
    lease_owner TEXT,
    lease_until BIGINT,
    settled_at BIGINT,
    verdict TEXT,
    class TEXT,
    stopped TEXT,
    change_number BIGINT,
    erased BIGINT NOT NULL
);

CREATE INDEX canary_due ON canary (location, next_look) WHERE next_look IS NOT NULL AND lease_until IS NULL;
CREATE INDEX canary_leased ON canary (location, lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX canary_open ON canary (location, route, slot) WHERE verdict IS NULL AND erased = 0;
CREATE INDEX canary_change ON canary (location, change_number) WHERE change_number IS NOT NULL;
CREATE INDEX canary_route ON canary (route, slot);
CREATE INDEX canary_slot ON canary (slot);

-- A repeated write of the same event, after an answer that was lost, leaves one row: its fingerprint is the same.
CREATE TABLE event (
    canary_id TEXT NOT NULL REFERENCES canary (canary_id) ON DELETE CASCADE,
    fingerprint BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    written_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (canary_id, fingerprint)
) /*clustered*/;

CREATE TABLE notification (
    notification_id TEXT NOT NULL,
    canary_id TEXT NOT NULL REFERENCES canary (canary_id) ON DELETE CASCADE,
    PRIMARY KEY (notification_id, canary_id)
) /*clustered*/;

CREATE INDEX notification_canary ON notification (canary_id);

-- The newest of each kind on each route: it outlives the canaries, so that a monthly schedule is known after a week.
CREATE TABLE stream (
    route TEXT NOT NULL,
    location TEXT NOT NULL,
    kind TEXT NOT NULL,
    slot BIGINT,
    submitted_at BIGINT,
    arrived_at BIGINT,
    PRIMARY KEY (route, location, kind)
) /*clustered*/;

CREATE TABLE cap (
    route TEXT NOT NULL,
    location TEXT NOT NULL,
    clock_hour BIGINT NOT NULL,
    planned BIGINT NOT NULL,
    PRIMARY KEY (route, location, clock_hour)
) /*clustered*/;

-- The bucket comes before the names, so that the rows of a window lie side by side.
CREATE TABLE sums (
    family TEXT NOT NULL,
    level BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    route TEXT NOT NULL,
    location TEXT NOT NULL,
    word TEXT NOT NULL,
    class TEXT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (family, level, bucket, route, location, word, class)
) /*clustered*/;

CREATE TABLE counter (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
) /*clustered*/;

-- `change` numbers judgements, `ping` counts proofs that a write can be made, the others say from when on each level has its sums.
INSERT INTO counter (name, value) VALUES
    ('change', 0), ('ping', 0), ('kept_60', 0), ('kept_600', 0), ('kept_3600', 0), ('kept_86400', 0);

-- An empty route means all of them.
CREATE TABLE pause (
    route TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    reason TEXT NOT NULL,
    ends_at BIGINT NOT NULL
) /*clustered*/;

CREATE TABLE operation (
    operation_id TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    target TEXT NOT NULL
) /*clustered*/;

CREATE INDEX operation_at ON operation (at);

CREATE TABLE sink_proof (
    receiver TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (receiver, at)
) /*clustered*/;
