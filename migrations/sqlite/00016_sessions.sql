-- Browsers in which people signed in.

-- +goose Up

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    hash BLOB NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    owner TEXT NOT NULL,
    token TEXT NOT NULL,
    issuer TEXT NOT NULL,
    claims BLOB NOT NULL, -- JSON
    created INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_owner ON sessions (owner, created);
CREATE INDEX sessions_expires ON sessions (expires);

PRAGMA user_version = 16;

-- +goose Down

DROP TABLE sessions;

PRAGMA user_version = 15;
