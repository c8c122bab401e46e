-- Digests are "algorithm:hex". Texts are compared and ordered by their bytes, whatever the
-- database's own collation is. Facts cannot be made anew from stored bytes; what can be is in
-- manifest_derived and recorded.

-- +goose Up

-- The clock of the catalog. All that replicas compare is by it: ages, leases, deadlines.
CREATE FUNCTION catalog_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT now()';
CREATE FUNCTION catalog_in(microseconds bigint) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT catalog_now() + microseconds * interval ''1 microsecond''';

-- The catalog itself. Its one row says which catalog this is, also after it was moved, and where its
-- content is.
CREATE TABLE catalog (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(), -- tells this catalog from every other one
    schema_version integer NOT NULL, -- number of the last step, which every step sets
    schema_mark integer NOT NULL, -- tells this schema from others with this number: a sum of this file, which a test computes
    origins text COLLATE "C" NOT NULL DEFAULT '', -- ids of the catalogs that it was restored from, latest first, separated by blanks
    storage text COLLATE "C" NOT NULL DEFAULT '', -- of the content that it owns
    epoch bigint NOT NULL DEFAULT 0 -- of that content; 0: it owns none yet
);

-- What the processes of this catalog agreed on. A part without a row was never recorded.
CREATE TABLE configuration (
    part text COLLATE "C" PRIMARY KEY CHECK (part IN ('environments', 'access', 'promoter')),
    digest text COLLATE "C" NOT NULL CHECK (digest <> '')
);

-- Content.

-- Which blobs belong to which repository. Bytes are shared, membership is not.
CREATE TABLE blobs (
    repository text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    created timestamptz NOT NULL, -- when the record came, which a collector waits for
    condemned timestamptz, -- since when nothing needs it; null: it is not condemned
    PRIMARY KEY (repository, digest)
);

-- Whether any repository holds a digest.
CREATE INDEX blobs_digest ON blobs (digest);

CREATE TABLE manifests (
    repository text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    media_type text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    created timestamptz NOT NULL,
    condemned timestamptz,
    pusher text COLLATE "C" NOT NULL, -- so that what one principal attaches to a subject has a bound; empty: the service itself
    PRIMARY KEY (repository, digest)
);

CREATE INDEX manifests_digest ON manifests (digest);

-- Derived: repeats what the manifest's bytes say. One row per (subject, referrer), so
-- that referrers that come in at the same time never overwrite each other.
CREATE TABLE manifest_derived (
    repository text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    artifact_type text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL, -- empty: refers to nothing
    annotations text COLLATE "C" NOT NULL, -- JSON object of strings, which jsonb would not take as they are
    PRIMARY KEY (repository, digest)
);

CREATE INDEX manifest_derived_subject ON manifest_derived (repository, subject, digest) WHERE subject <> '';

CREATE TABLE tags (
    repository text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    PRIMARY KEY (repository, tag)
);

CREATE INDEX tags_digest ON tags (repository, digest);

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

-- Bytes that no repository holds. They are removed outside of transactions: removal is the
-- identifier of the removal that is under way, and until when it lasts; null: none is.
CREATE TABLE condemned (
    digest text COLLATE "C" PRIMARY KEY,
    at timestamptz NOT NULL,
    removal text COLLATE "C",
    until timestamptz
);

CREATE INDEX condemned_removal ON condemned (removal) WHERE removal IS NOT NULL;

-- Content that is composed of others when it is read, so that its own bytes need not be stored.
CREATE TABLE recipes (
    digest text COLLATE "C" PRIMARY KEY,
    size bigint NOT NULL,
    created timestamptz NOT NULL,
    pieces text COLLATE "C" NOT NULL -- JSON array of literal bytes and digests
);

-- Which digests a recipe needs. They count as held.
CREATE TABLE recipe_parts (
    part text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    PRIMARY KEY (part, digest)
);

CREATE INDEX recipe_parts_digest ON recipe_parts (digest);

-- Promotion.

CREATE TABLE heads (
    environment text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    release text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL,
    hold text COLLATE "C" NOT NULL, -- empty: none
    PRIMARY KEY (environment, model)
);

-- Models are listed by name over all environments.
CREATE INDEX heads_model ON heads (model, environment);

-- Promotions that have begun and not ended.
CREATE TABLE intents (
    environment text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    release text COLLATE "C" NOT NULL,
    begun timestamptz NOT NULL,
    PRIMARY KEY (environment, model)
);

-- The body is the event as canonical JSON. The other columns are computed from it, so
-- that what a query selects by is always what the chain's hashes cover. They are cut out
-- of the text rather than read as JSON: a reason may hold \u0000, which PostgreSQL
-- accepts in json and refuses to look past. In canonical JSON, which has no blanks, a
-- quote inside of a string never stands without a backslash, so that '"model":"' can
-- only be the field. What would need an escape cannot be cut out, is null, and is refused.
CREATE TABLE history (
    seq bigint PRIMARY KEY CHECK (coalesce(seq = substring(body FROM '"seq":([0-9]+)')::bigint, false)),
    environment text COLLATE "C" NOT NULL GENERATED ALWAYS AS (substring(body FROM '"environment":"([^"\\]*)"')) STORED,
    model text COLLATE "C" NOT NULL GENERATED ALWAYS AS (substring(body FROM '"model":"([^"\\]*)"')) STORED,
    kind text COLLATE "C" NOT NULL GENERATED ALWAYS AS (substring(body FROM '"kind":"([^"\\]*)"')) STORED,
    subject text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(substring(body FROM '"subject":"([^"\\]*)"'), '')) STORED,
    body text COLLATE "C" NOT NULL CHECK (body::json IS NOT NULL)
);

CREATE INDEX history_environment ON history (environment, seq);
CREATE INDEX history_model ON history (model, seq);
CREATE INDEX history_environment_model ON history (environment, model, seq);
CREATE INDEX history_kind ON history (kind, seq);
CREATE INDEX history_kind_environment ON history (kind, environment, seq);
CREATE INDEX history_subject ON history (subject, seq) WHERE subject <> '';
-- Evidence names events by their hash.
CREATE INDEX history_hash ON history ((substring(body FROM '"hash":"([^"]*)"')));

-- The chain shows tampering; the triggers stop accidents.
-- +goose StatementBegin
CREATE FUNCTION history_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'history is append-only' USING ERRCODE = 'restrict_violation';
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER history_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON history
    FOR EACH STATEMENT EXECUTE FUNCTION history_append_only();

-- The first event of a model that names a bundle: when the history saw that evidence first. It
-- repeats what the history says, to be found by the bundle.
CREATE TABLE recorded (
    model text COLLATE "C" NOT NULL,
    bundle text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (model, bundle)
);

-- The bundles are cut out of the text, as the columns of history are.
-- +goose StatementBegin
CREATE FUNCTION history_bundles(body text) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT found[1] FROM regexp_matches(substring(body FROM '"evidence":\[([^]]*)\]'), '"([^"]*)"', 'g') AS found
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION history_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO recorded (model, bundle, seq)
    SELECT NEW.model, named.bundle, NEW.seq FROM history_bundles(NEW.body) AS named (bundle)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER history_recorded AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION history_record();

-- Numbers that decisions rest on. They only grow, each in the transaction of the event that it counts.
CREATE TABLE counters (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

INSERT INTO counters (name, value) VALUES ('restrictions', 0);

-- The service.

-- Tokens are facts: the history names who acted by one, so no row is ever deleted.
CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    hash bytea NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    grants text COLLATE "C" NOT NULL, -- JSON
    created timestamptz NOT NULL,
    expires timestamptz, -- null: never
    revoked timestamptz, -- null: not
    used timestamptz -- to the hour or so, so that no request costs a write; null: never
);

-- A name says who acts as long as the token can be used.
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked IS NULL;

-- Browsers in which people signed in.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    owner text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    issuer text COLLATE "C" NOT NULL,
    claims bytea NOT NULL, -- JSON
    created timestamptz NOT NULL,
    expires timestamptz NOT NULL
);

CREATE INDEX sessions_owner ON sessions (owner, created);
CREATE INDEX sessions_expires ON sessions (expires);

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

INSERT INTO catalog (schema_version, schema_mark) VALUES (1, 1710993555);

-- +goose Down

DROP TABLE answers;
DROP TABLE leases;
DROP TABLE documents;
DROP TABLE secrets;
DROP TABLE sessions;
DROP TABLE tokens;
DROP TABLE counters;
DROP TABLE history;
DROP FUNCTION history_record();
DROP FUNCTION history_bundles(text);
DROP FUNCTION history_append_only();
DROP TABLE recorded;
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
DROP FUNCTION catalog_in(bigint);
DROP FUNCTION catalog_now();
