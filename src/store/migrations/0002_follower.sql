-- What the follower of a ledger keeps. Times are microseconds since 1970.

-- Who follows each ledger, and up to where: the position is text of the follower's own.
CREATE TABLE follower (
    ledger TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    position TEXT,
    saved_at BIGINT
) /*clustered*/;

-- Notifications that are pending and whose row is not read again: what a restart could not find out from new rows.
CREATE TABLE follower_unit (
    ledger TEXT NOT NULL,
    unit TEXT /*bytewise*/ NOT NULL,
    route TEXT NOT NULL,
    due BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (ledger, unit)
) /*clustered*/;

-- Attempts that came before their notification, or long after it was settled, until a lookup says whose they are.
CREATE TABLE follower_stray (
    ledger TEXT NOT NULL,
    unit TEXT /*bytewise*/ NOT NULL,
    attempt TEXT /*bytewise*/ NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (ledger, unit, attempt)
) /*clustered*/;

-- Counts of what has left the follower's memory, by minute and by hour.
CREATE TABLE follower_cell (
    ledger TEXT NOT NULL,
    level BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    route TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (ledger, level, bucket, route)
) /*clustered*/;

-- Notifications that are to be followed no more, by digest: their rows may still come by.
CREATE TABLE follower_erasure (
    digest TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL
) /*clustered*/;
