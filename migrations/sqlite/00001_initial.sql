-- Times are microseconds since 1970-01-01 UTC; 0 is none. Digests are "algorithm:hex". Texts that
-- can be absent are empty. Facts cannot be made anew from stored bytes; what can be is in
-- manifest_derived and recorded.

-- +goose Up

-- The mark of this schema, by which an opener tells it from others: a sum of this file. The test in this package computes it.
PRAGMA application_id = 0x6dc96b63;

-- The catalog itself. Its one row says which catalog this is and where its content is.
CREATE TABLE catalog (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL, -- tells this catalog from every other one
    origins TEXT NOT NULL DEFAULT '', -- ids of the catalogs that it was restored from, latest first, separated by blanks
    storage TEXT NOT NULL DEFAULT '', -- of the content that it owns
    epoch INTEGER NOT NULL DEFAULT 0 -- of that content; 0: it owns none yet
) STRICT;

INSERT INTO catalog (one, id) VALUES (1, lower(hex(randomblob(16))));

-- What the processes of this catalog agreed on. A part without a row was never recorded.
CREATE TABLE configuration (
    part TEXT PRIMARY KEY NOT NULL CHECK (part IN ('environments', 'access', 'promoter')),
    digest TEXT NOT NULL CHECK (digest <> '')
) STRICT, WITHOUT ROWID;

-- Content.

-- Which blobs belong to which repository. Bytes are shared, membership is not.
CREATE TABLE blobs (
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    created INTEGER NOT NULL, -- when the record came, which a collector waits for
    condemned INTEGER NOT NULL DEFAULT 0, -- since when nothing needs it
    PRIMARY KEY (repository, digest)
) STRICT, WITHOUT ROWID;

-- Whether any repository holds a digest.
CREATE INDEX blobs_digest ON blobs (digest);

CREATE TABLE manifests (
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    created INTEGER NOT NULL,
    condemned INTEGER NOT NULL DEFAULT 0,
    pusher TEXT NOT NULL, -- so that what one principal attaches to a subject has a bound; empty: the service itself
    PRIMARY KEY (repository, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX manifests_digest ON manifests (digest);

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

-- Bytes that no repository holds. They are removed outside of transactions: removal is the
-- identifier of the removal that is under way, and until when it lasts; empty and 0: none is.
CREATE TABLE condemned (
    digest TEXT NOT NULL,
    at INTEGER NOT NULL,
    removal TEXT NOT NULL DEFAULT '',
    until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX condemned_removal ON condemned (removal) WHERE removal <> '';

-- Content that is composed of others when it is read, so that its own bytes need not be stored.
CREATE TABLE recipes (
    digest TEXT PRIMARY KEY NOT NULL,
    size INTEGER NOT NULL,
    created INTEGER NOT NULL,
    pieces TEXT NOT NULL -- JSON array of literal bytes and digests
) STRICT, WITHOUT ROWID;

-- Which digests a recipe needs. They count as held.
CREATE TABLE recipe_parts (
    part TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (part, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX recipe_parts_digest ON recipe_parts (digest);

-- Promotion.

CREATE TABLE heads (
    environment TEXT NOT NULL,
    model TEXT NOT NULL,
    release TEXT NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    hold TEXT NOT NULL, -- empty: none
    PRIMARY KEY (environment, model)
) STRICT, WITHOUT ROWID;

-- Models are listed by name over all environments.
CREATE INDEX heads_model ON heads (model, environment);

-- Promotions that have begun and not ended.
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
-- Evidence names events by their hash.
CREATE INDEX history_hash ON history (hash);

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

-- The first event of a model that names a bundle: when the history saw that evidence first. It
-- repeats what the history says, to be found by the bundle.
CREATE TABLE recorded (
    model TEXT NOT NULL,
    bundle TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (model, bundle)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER history_recorded AFTER INSERT ON history
BEGIN
    INSERT OR IGNORE INTO recorded (model, bundle, seq)
    SELECT new.model, named.value, new.seq FROM json_each(new.body, '$.evidence') AS named;
END;
-- +goose StatementEnd

-- Numbers that decisions rest on. They only grow, each in the transaction of the event that it counts.
CREATE TABLE counters (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('restrictions', 0);

-- The service.

-- Tokens are facts: the history names who acted by one, so no row is ever deleted.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    hash BLOB NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    grants TEXT NOT NULL, -- JSON
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    revoked INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0 -- to the hour or so, so that no request costs a write
) STRICT, WITHOUT ROWID;

-- A name says who acts as long as the token can be used.
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked = 0;

-- Browsers in which people signed in.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    hash BLOB NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    owner TEXT NOT NULL,
    token TEXT NOT NULL,
    issuer TEXT NOT NULL,
    claims BLOB NOT NULL, -- JSON
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_owner ON sessions (owner, created);
CREATE INDEX sessions_expires ON sessions (expires);

-- What replicas of a service share: keys that they sign with for each other.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Documents that are kept by name: node types, runtimes, webhooks and what those were told.
CREATE TABLE documents (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- What only one of several processes shall do.
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers to requests with an Idempotency-Key.
CREATE TABLE answers (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL, -- digest of what was asked
    claimant TEXT NOT NULL,
    until INTEGER NOT NULL,
    status INTEGER NOT NULL, -- 0: the claimant is at work
    type TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_until ON answers (until);

PRAGMA user_version = 1;

-- +goose Down

DROP TABLE answers;
DROP TABLE leases;
DROP TABLE documents;
DROP TABLE secrets;
DROP TABLE sessions;
DROP TABLE tokens;
DROP TABLE counters;
DROP TABLE recorded;
DROP TABLE history;
DROP TABLE intents;
DROP TABLE heads;
DROP TABLE recipe_parts;
DROP TABLE recipes;
DROP TABLE condemned;
DROP TABLE uploads;
DROP TABLE tags;
DROP TABLE manifest_derived;
DROP TABLE manifests;
DROP TABLE blobs;
DROP TABLE configuration;
DROP TABLE catalog;

PRAGMA user_version = 0;
PRAGMA application_id = 0;
