-- What a collector needs: when records came, and what it has condemned.

-- +goose Up

-- created is when the record came; of older ones it is the time of this step.
-- condemned is since when nothing needs it; 0: it is not condemned.
ALTER TABLE blobs ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN condemned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE manifests ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE manifests ADD COLUMN condemned INTEGER NOT NULL DEFAULT 0;
UPDATE blobs SET created = CAST(unixepoch('now') AS INTEGER) * 1000000;
UPDATE manifests SET created = CAST(unixepoch('now') AS INTEGER) * 1000000;

-- Whether any repository holds a digest.
CREATE INDEX blobs_digest ON blobs (digest);
CREATE INDEX manifests_digest ON manifests (digest);

-- Bytes that no repository holds.
CREATE TABLE condemned (
    digest TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (digest)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 8;

-- +goose Down

DROP TABLE condemned;
DROP INDEX manifests_digest;
DROP INDEX blobs_digest;
ALTER TABLE manifests DROP COLUMN condemned;
ALTER TABLE manifests DROP COLUMN created;
ALTER TABLE blobs DROP COLUMN condemned;
ALTER TABLE blobs DROP COLUMN created;

PRAGMA user_version = 7;
