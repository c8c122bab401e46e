-- What only one of several processes shall do. Times are microseconds since 1970-01-01 UTC.

-- +goose Up

CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 6;

-- +goose Down

DROP TABLE leases;

PRAGMA user_version = 5;
