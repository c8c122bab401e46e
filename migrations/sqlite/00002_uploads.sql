-- +goose Up

-- How far each upload has come. What its storage has beyond that did not arrive.
CREATE TABLE uploads (
    id TEXT PRIMARY KEY NOT NULL,
    repository TEXT NOT NULL,
    principal TEXT NOT NULL, -- empty: nobody was asked who he is
    arrived INTEGER NOT NULL, -- bytes
    hash BLOB NOT NULL, -- state of the sha256 of those bytes, as Go's crypto/sha256 writes it; empty at the beginning
    place TEXT NOT NULL, -- the storage's own notes
    version INTEGER NOT NULL,
    touched INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_touched ON uploads (touched, id);

PRAGMA user_version = 2;

-- +goose Down

DROP TABLE uploads;

PRAGMA user_version = 1;
