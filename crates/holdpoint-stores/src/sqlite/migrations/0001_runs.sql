-- A journal of entries in the order of commits, and small rows beside it that are found by index.
-- Rows refer to each other by integer keys: the long names stand once.

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
    key      INTEGER PRIMARY KEY,
    id       BLOB NOT NULL UNIQUE,
    session  INTEGER NOT NULL,
    agent    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    -- 0 working, 1 waiting, 2 finished
    status   INTEGER NOT NULL,
    -- The lease: how many have held it, who does, and until when; without a holder, since when nobody does.
    epoch    INTEGER NOT NULL,
    owner    TEXT,
    since    INTEGER NOT NULL
) STRICT;
CREATE INDEX run_of_session ON run (session);
CREATE UNIQUE INDEX run_under_way ON run (session, agent) WHERE status < 2;
CREATE INDEX run_at_work ON run (since) WHERE status = 0;

-- What one append wrote. The session's counters are those of its last entry: how many events, how many times pauses
-- opened. Keys grow with every append, so that the entries of a run or session lie in the order of writing.
CREATE TABLE entry (
    key          INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    session      INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL,
    pause_groups INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;
CREATE INDEX entry_of_run ON entry (run);
CREATE INDEX entry_of_session ON entry (session, last_seq, pause_groups);

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
