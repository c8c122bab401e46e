-- What decisions rest on, and where in the history they were made.

-- +goose Up

-- Numbers that only grow, each changed in the transaction of the event that it counts.
CREATE TABLE counters (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('restrictions', 0);

-- Evidence names events by their hash.
CREATE INDEX history_hash ON history (hash);

PRAGMA user_version = 12;

-- +goose Down

DROP INDEX history_hash;
DROP TABLE counters;

PRAGMA user_version = 11;
