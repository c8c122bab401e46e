-- Documents that are kept by name: node types and runtimes.

-- +goose Up

CREATE TABLE documents (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 4;

-- +goose Down

DROP TABLE documents;

PRAGMA user_version = 3;
