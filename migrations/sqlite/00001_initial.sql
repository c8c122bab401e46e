-- Times are microseconds since 1970-01-01 UTC. Digests are "algorithm:hex".
-- Facts cannot be made anew from stored bytes; what can be is in manifest_derived.

-- +goose Up

-- Which blobs belong to which repository. Bytes are shared, membership is not.
CREATE TABLE blobs (
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (repository, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE manifests (
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (repository, digest)
) STRICT, WITHOUT ROWID;

-- Derived: repeats what the manifest's bytes say. One row per (subject, referrer), so
-- that referrers that come in at the same time never overwrite each other.
CREATE TABLE manifest_derived (
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    artifact_type TEXT NOT NULL,
    subject TEXT NOT NULL, -- empty: refers to nothing
    annotations TEXT NOT NULL, -- JSON object of strings
    PRIMARY KEY (repository, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX manifest_derived_subject ON manifest_derived (repository, subject, digest) WHERE subject <> '';

CREATE TABLE tags (
    repository TEXT NOT NULL,
    tag TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (repository, tag)
) STRICT, WITHOUT ROWID;

CREATE TABLE heads (
    environment TEXT NOT NULL,
    model TEXT NOT NULL,
    release TEXT NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    hold TEXT NOT NULL, -- empty: none
    PRIMARY KEY (environment, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE intents (
    environment TEXT NOT NULL,
    model TEXT NOT NULL,
    source TEXT NOT NULL,
    release TEXT NOT NULL,
    begun INTEGER NOT NULL,
    PRIMARY KEY (environment, model)
) STRICT, WITHOUT ROWID;

-- The body is the event as canonical JSON. The other columns are computed from it, so
-- that what a query selects by is always what the chain's hashes cover.
CREATE TABLE history (
    seq INTEGER PRIMARY KEY NOT NULL CHECK (seq = json_extract(body, '$.seq')),
    environment TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.environment')) STORED,
    model TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.model')) STORED,
    kind TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.kind')) STORED,
    subject TEXT NOT NULL GENERATED ALWAYS AS (coalesce(json_extract(body, '$.subject'), '')) STORED,
    prev TEXT NOT NULL GENERATED ALWAYS AS (coalesce(json_extract(body, '$.prev'), '')) STORED,
    hash TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.hash')) STORED,
    body TEXT NOT NULL
) STRICT;

CREATE INDEX history_model ON history (environment, model, seq);
CREATE INDEX history_subject ON history (subject, seq) WHERE subject <> '';

-- The chain shows tampering; the triggers stop accidents.
-- +goose StatementBegin
CREATE TRIGGER history_append_only_update BEFORE UPDATE ON history
BEGIN
    SELECT RAISE(ABORT, 'history is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER history_append_only_delete BEFORE DELETE ON history
BEGIN
    SELECT RAISE(ABORT, 'history is append-only');
END;
-- +goose StatementEnd

PRAGMA user_version = 1;

-- +goose Down

DROP TABLE history;
DROP TABLE intents;
DROP TABLE heads;
DROP TABLE tags;
DROP TABLE manifest_derived;
DROP TABLE manifests;
DROP TABLE blobs;

PRAGMA user_version = 0;
