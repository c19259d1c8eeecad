-- The outbox: who is to be told of which pauses, and what became of it.
CREATE TABLE notice (
    run         UUID NOT NULL,
    number      BIGINT NOT NULL,
    -- 0 the pause opened, 1 it ended
    kind        SMALLINT NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    -- 0 waiting, 1 delivered, 2 failed
    state       SMALLINT NOT NULL,
    -- How many were begun.
    attempts    BIGINT NOT NULL,
    -- While it waits, when the next attempt is due; then since when it is settled.
    at          BIGINT NOT NULL,
    -- What the notifier kept, or why it was given up.
    note        TEXT,
    PRIMARY KEY (run, number, kind, destination)
);
CREATE INDEX notice_due ON notice (destination, at, run, number, kind) WHERE state = 0;
CREATE INDEX notice_failed ON notice (run, number, kind, destination) WHERE state = 2;
