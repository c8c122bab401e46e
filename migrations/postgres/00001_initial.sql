-- Digests are "algorithm:hex". Texts are compared and ordered by their bytes, whatever
-- the database's own collation is.
-- Facts cannot be made anew from stored bytes; what can be is in manifest_derived.

-- +goose Up

-- One row. The id tells this catalog from every other, also after it was moved; version
-- is the number of the last step, which every step sets.
CREATE TABLE catalog (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    version integer NOT NULL,
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);

-- Which blobs belong to which repository. Bytes are shared, membership is not.
CREATE TABLE blobs (
    repository text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (repository, digest)
);

CREATE TABLE manifests (
    repository text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    media_type text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (repository, digest)
);

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

CREATE TABLE heads (
    environment text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    release text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL,
    hold text COLLATE "C" NOT NULL, -- empty: none
    PRIMARY KEY (environment, model)
);

CREATE INDEX heads_model ON heads (model, environment);

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

INSERT INTO catalog (version) VALUES (1);

-- +goose Down

DROP TABLE history;
DROP FUNCTION history_append_only();
DROP TABLE intents;
DROP TABLE heads;
DROP TABLE tags;
DROP TABLE manifest_derived;
DROP TABLE manifests;
DROP TABLE blobs;
DROP TABLE catalog;
