-- How far the chain of audit records has come. Without it, records that are cut off at the end would not be missed.
CREATE TABLE audit_head (
    key  INTEGER PRIMARY KEY CHECK (key = 1),
    n    INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO audit_head (key, n, hash) SELECT 1, n, hash FROM audit ORDER BY n DESC LIMIT 1;
