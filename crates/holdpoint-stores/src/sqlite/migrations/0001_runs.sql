-- Journals of entries, and small rows beside them that are found by index. Long names stand once and are referred to by
-- integer keys. Many keys hold a session and the number of one of its events, as `session << 32 | seq`: what belongs to
-- a session lies together, in order, and needs no index of its own.

CREATE TABLE session (
    key  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Names of agents and tools.
CREATE TABLE name (
    key  INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE run (
    -- The session, and the number of the run's first event.
    key      INTEGER PRIMARY KEY,
    id       BLOB NOT NULL UNIQUE,
    agent    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    -- The number of the run's last event.
    last_seq INTEGER NOT NULL,
    -- 0 working, 1 waiting, 2 finished
    status   INTEGER NOT NULL,
    -- The lease: how many have held it, who does, and until when; without a holder, since when nobody does.
    epoch    INTEGER NOT NULL,
    owner    TEXT,
    since    INTEGER NOT NULL
) STRICT;
CREATE INDEX run_at_work ON run (since) WHERE status = 0;

-- The unfinished run of an agent in a session.
CREATE TABLE under_way (
    session INTEGER NOT NULL,
    agent   INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;

-- What one append wrote. The session's counters are those of its last entry.
CREATE TABLE entry (
    -- The session, and the number of the entry's last event.
    key          INTEGER PRIMARY KEY,
    -- The number of the first event of the run.
    run          INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    -- How many times pauses have opened in the session, this time included.
    pause_groups INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;

CREATE TABLE pause (
    run         INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    -- 0 approval, 1 question, 2 confirmation, 3 in doubt
    kind        INTEGER NOT NULL,
    -- 0 open, 1 decided, 2 expired, 3 withdrawn
    status      INTEGER NOT NULL,
    agent       INTEGER NOT NULL,
    tool        INTEGER,
    opened_at   INTEGER NOT NULL,
    expires_at  INTEGER,
    pause_group INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX pause_by_time ON pause (status, opened_at);
CREATE INDEX pause_by_deadline ON pause (expires_at) WHERE status = 0 AND expires_at IS NOT NULL;

-- Rules that outlive the run in which they were made.
CREATE TABLE rule (
    run        BLOB NOT NULL,
    number     INTEGER NOT NULL,
    session    INTEGER NOT NULL,
    uses       INTEGER NOT NULL,
    is_revoked INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX rule_of_session ON rule (session);

-- Definitions of agents, named by the SHA-256 of what they say.
CREATE TABLE definition (
    digest BLOB NOT NULL UNIQUE,
    body   BLOB NOT NULL
) STRICT;
