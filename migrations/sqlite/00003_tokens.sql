-- Times are microseconds since 1970-01-01 UTC; 0 is none.

-- +goose Up

-- Tokens are facts: the history names who acted by one, so no row is ever deleted.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    hash BLOB NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    grants TEXT NOT NULL, -- JSON
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    revoked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A name says who acts as long as the token can be used.
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked = 0;

-- What replicas of a service share: keys that they sign with for each other.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;

-- +goose Down

DROP TABLE secrets;
DROP TABLE tokens;

PRAGMA user_version = 1;
