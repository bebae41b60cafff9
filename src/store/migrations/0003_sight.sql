-- What the monitor knows of its own sight.

ALTER TABLE canary ADD COLUMN has_sink BIGINT NOT NULL DEFAULT 1;

-- 1 where the row is no proof, but the moment from which on a listener of ours could take arrivals (again).
ALTER TABLE sink_proof ADD COLUMN opened BIGINT NOT NULL DEFAULT 0;
