-- The outbox: who is to be told of which pauses, and what became of it. A notice names its run by id, like a rule does.
CREATE TABLE notice (
    run         BLOB NOT NULL,
    number      INTEGER NOT NULL,
    -- 0 the pause opened, 1 it ended
    kind        INTEGER NOT NULL,
    destination TEXT NOT NULL,
    -- 0 waiting, 1 delivered, 2 failed
    state       INTEGER NOT NULL,
    -- How many were begun.
    attempts    INTEGER NOT NULL,
    -- While it waits, when the next attempt is due; then since when it is settled.
    at          INTEGER NOT NULL,
    -- What the notifier kept, or why it was given up.
    note        TEXT,
    PRIMARY KEY (run, number, kind, destination)
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_due ON notice (destination, at) WHERE state = 0;
CREATE INDEX notice_failed ON notice (run, number, kind, destination) WHERE state = 2;
