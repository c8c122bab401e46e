-- Which catalog this is, and where its content is.

-- +goose Up

-- One row. id tells this catalog from every other one. A catalog that already has a history
-- takes the hash of its first event, so that backups made before this step have the same id.
-- origins are the ids of the catalogs that it was restored from, latest first, separated by
-- blanks. storage and epoch are those of the content that it owns; epoch 0: none yet.
CREATE TABLE catalog (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    origins TEXT NOT NULL DEFAULT '',
    storage TEXT NOT NULL DEFAULT '',
    epoch INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO catalog (one, id)
SELECT 1, coalesce((SELECT substr(hash, 8, 32) FROM history WHERE seq = 1), lower(hex(randomblob(16))));

PRAGMA user_version = 10;

-- +goose Down

DROP TABLE catalog;

PRAGMA user_version = 9;
