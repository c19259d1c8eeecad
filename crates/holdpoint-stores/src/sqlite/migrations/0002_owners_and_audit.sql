-- Who began a session's first run owns the session. For sessions that are there already, their first event tells.
ALTER TABLE session ADD COLUMN began_by TEXT;
UPDATE session SET began_by = coalesce(
    (SELECT json_extract(CAST(body AS TEXT), '$.events[0]."run.started".by') FROM entry
     WHERE entry.key BETWEEN session.key << 32 AND (session.key << 32) + 4294967295 ORDER BY entry.key LIMIT 1),
    'local');
-- Where nobody is told apart, everything is the local person's: then the index is not needed, and not kept.
CREATE INDEX session_by_owner ON session (began_by) WHERE began_by <> 'local';

-- Who decided what. The hash is that of the hash before it and of the body.
CREATE TABLE audit (
    n    INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
