-- Entries lie in the order in which they were written, and an index finds those of a session. Sixty-four runs that write
-- at once then fill a page or two between them, where each used to change a page of its own.
CREATE TABLE entry_as_it_came (
    n            INTEGER PRIMARY KEY,
    -- The session, and the number of the entry's last event.
    key          INTEGER NOT NULL,
    -- The number of the first event of the run.
    run          INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    -- How many times pauses have opened in the session, this time included.
    pause_groups INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;
INSERT INTO entry_as_it_came (key, run, revision, pause_groups, at, body)
    SELECT key, run, revision, pause_groups, at, body FROM entry ORDER BY at, key;
DROP TABLE entry;
ALTER TABLE entry_as_it_came RENAME TO entry;
CREATE UNIQUE INDEX entry_of_session ON entry (key);
