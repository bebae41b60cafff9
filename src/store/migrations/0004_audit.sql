-- What the audit of a followed ledger holds. Times are microseconds since 1970.

-- The notifications of the sample: when each was due, and digests of the attempts that were seen of it.
CREATE TABLE audit_sample (
    ledger TEXT NOT NULL,
    unit TEXT /*bytewise*/ NOT NULL,
    due BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (ledger, unit)
) /*clustered*/;
