-- Journals of entries, and rows beside them that are found by index. Everything that an append changes belongs to one
-- session, whose row it locks first: that row gives out the numbers of events and of pauses that open together.
--
-- Names stand in the order of their bytes, whatever language the database speaks. Times are milliseconds since 1970.

CREATE TABLE session (
    key          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL UNIQUE,
    -- Who began its first run owns it.
    began_by     TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    last_at      BIGINT NOT NULL,
    runs         BIGINT NOT NULL DEFAULT 0,
    events       BIGINT NOT NULL DEFAULT 0,
    pause_groups BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX session_by_owner ON session (began_by, key);

CREATE TABLE run (
    id         UUID PRIMARY KEY,
    session    BIGINT NOT NULL REFERENCES session,
    agent      TEXT COLLATE "C" NOT NULL,
    -- The number of its first event.
    first_seq  BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    -- 0 working, 1 waiting, 2 finished
    status     SMALLINT NOT NULL,
    started_at BIGINT NOT NULL,
    last_at    BIGINT NOT NULL,
    -- The lease: how many have held it, who does, and until when; without a holder, since when nobody does.
    epoch      BIGINT NOT NULL,
    owner      TEXT COLLATE "C",
    since      BIGINT NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX run_of_session ON run (session, first_seq);
-- An agent has one run at a time in a session.
CREATE UNIQUE INDEX run_under_way ON run (session, agent) WHERE status <> 2;
CREATE INDEX run_at_work ON run (since, id) WHERE status = 0;

-- What one append wrote.
CREATE TABLE entry (
    session      BIGINT NOT NULL,
    -- The number of its last event.
    last_seq     BIGINT NOT NULL,
    run          UUID NOT NULL,
    revision     BIGINT NOT NULL,
    -- How many times pauses have opened in the session, this time included.
    pause_groups BIGINT NOT NULL,
    at           BIGINT NOT NULL,
    -- Chosen by whoever wrote it, who finds it again by this where a lost connection left it in doubt.
    token        UUID NOT NULL,
    body         BYTEA NOT NULL,
    PRIMARY KEY (session, last_seq)
);
CREATE UNIQUE INDEX entry_of_run ON entry (run, revision);

CREATE TABLE pause (
    run         UUID NOT NULL,
    number      BIGINT NOT NULL,
    session     BIGINT NOT NULL,
    -- 0 approval, 1 question, 2 confirmation, 3 in doubt
    kind        SMALLINT NOT NULL,
    -- 0 open, 1 decided, 2 expired, 3 withdrawn
    status      SMALLINT NOT NULL,
    agent       TEXT COLLATE "C" NOT NULL,
    tool        TEXT COLLATE "C",
    opened_at   BIGINT NOT NULL,
    expires_at  BIGINT,
    pause_group BIGINT NOT NULL,
    PRIMARY KEY (run, number)
);
CREATE INDEX pause_by_time ON pause (status, opened_at, run, number);
CREATE INDEX pause_of_session ON pause (session, opened_at, run, number);
CREATE INDEX pause_by_deadline ON pause (expires_at, run, number) WHERE status = 0 AND expires_at IS NOT NULL;

-- Rules that outlive the run in which they were made.
CREATE TABLE rule (
    run        UUID NOT NULL,
    number     BIGINT NOT NULL,
    session    BIGINT NOT NULL,
    uses       BIGINT NOT NULL,
    is_revoked BOOLEAN NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (run, number)
);
CREATE INDEX rule_of_session ON rule (session, run, number);

-- Definitions of agents, named by the SHA-256 of what they say.
CREATE TABLE definition (
    digest BYTEA PRIMARY KEY,
    body   BYTEA NOT NULL
);

-- Who decided what. The hash is that of the hash before it and of the body.
CREATE TABLE audit (
    n    BIGINT PRIMARY KEY,
    body TEXT NOT NULL,
    hash BYTEA NOT NULL
);

-- How far the chain of audit records has come: who lengthens it locks this row. Without it, records that are cut off at
-- the end would not be missed. Before the first record there is no hash.
CREATE TABLE audit_head (
    key  SMALLINT PRIMARY KEY CHECK (key = 1),
    n    BIGINT NOT NULL,
    hash BYTEA
);
INSERT INTO audit_head (key, n) VALUES (1, 0);
