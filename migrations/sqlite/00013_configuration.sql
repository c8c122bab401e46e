-- What the processes of this catalog agreed on.

-- +goose Up

-- A part without a row was never recorded.
CREATE TABLE configuration (
    part TEXT PRIMARY KEY NOT NULL CHECK (part IN ('environments', 'access', 'promoter')),
    digest TEXT NOT NULL CHECK (digest <> '')
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 13;

-- +goose Down

DROP TABLE configuration;

PRAGMA user_version = 12;
