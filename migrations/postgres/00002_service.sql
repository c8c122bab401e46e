-- What a service keeps beside names, heads and history.

-- +goose Up

-- How far each upload has come. What its storage has beyond that did not arrive.
CREATE TABLE uploads (
    id text COLLATE "C" PRIMARY KEY,
    repository text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL, -- empty: nobody was asked who he is
    arrived bigint NOT NULL, -- bytes
    hash bytea NOT NULL, -- state of the sha256 of those bytes, as Go's crypto/sha256 writes it; empty at the beginning
    place text COLLATE "C" NOT NULL, -- the storage's own notes
    version bigint NOT NULL,
    touched timestamptz NOT NULL
);

CREATE INDEX uploads_touched ON uploads (touched, id);

-- Tokens are facts: the history names who acted by one, so no row is ever deleted.
CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    hash bytea NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    grants text COLLATE "C" NOT NULL, -- JSON
    created timestamptz NOT NULL,
    expires timestamptz, -- null: never
    revoked timestamptz -- null: not
);

-- A name says who acts as long as the token can be used.
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked IS NULL;

-- What replicas of a service share: keys that they sign with for each other.
CREATE TABLE secrets (
    name text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- Documents that are kept by name: node types, runtimes, webhooks and what those were told.
CREATE TABLE documents (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL, -- JSON
    PRIMARY KEY (kind, name)
);

-- What only one of several processes shall do.
CREATE TABLE leases (
    name text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL
);

-- Answers to requests with an Idempotency-Key.
CREATE TABLE answers (
    principal text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL, -- digest of what was asked
    claimant text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    status bigint NOT NULL, -- 0: the claimant is at work
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (principal, key)
);

CREATE INDEX answers_until ON answers (until);

UPDATE catalog SET version = 2;

-- +goose Down

DROP TABLE answers;
DROP TABLE leases;
DROP TABLE documents;
DROP TABLE secrets;
DROP TABLE tokens;
DROP TABLE uploads;

UPDATE catalog SET version = 1;
