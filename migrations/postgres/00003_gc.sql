-- What a collector needs: when records came, and what it has condemned.

-- +goose Up

-- created is when the record came; of older ones it is the time of this step.
-- condemned is since when nothing needs it; null: it is not condemned.
ALTER TABLE blobs ADD COLUMN created timestamptz NOT NULL DEFAULT now(), ADD COLUMN condemned timestamptz;
ALTER TABLE manifests ADD COLUMN created timestamptz NOT NULL DEFAULT now(), ADD COLUMN condemned timestamptz;

-- Whether any repository holds a digest.
CREATE INDEX blobs_digest ON blobs (digest);
CREATE INDEX manifests_digest ON manifests (digest);

-- Bytes that no repository holds.
CREATE TABLE condemned (
    digest text COLLATE "C" PRIMARY KEY,
    at timestamptz NOT NULL
);

UPDATE catalog SET version = 3;

-- +goose Down

DROP TABLE condemned;
DROP INDEX manifests_digest;
DROP INDEX blobs_digest;
ALTER TABLE manifests DROP COLUMN condemned, DROP COLUMN created;
ALTER TABLE blobs DROP COLUMN condemned, DROP COLUMN created;

UPDATE catalog SET version = 2;
