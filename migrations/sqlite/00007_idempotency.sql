-- Answers to requests with an Idempotency-Key.

-- +goose Up

CREATE TABLE answers (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL, -- digest of what was asked
    claimant TEXT NOT NULL,
    until INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    status INTEGER NOT NULL, -- 0: the claimant is at work
    type TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_until ON answers (until);

PRAGMA user_version = 7;

-- +goose Down

DROP TABLE answers;

PRAGMA user_version = 6;
