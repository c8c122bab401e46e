-- Where the content of this catalog is.

-- +goose Up

-- origins are the ids of the catalogs that this one was restored from, latest first,
-- separated by blanks. storage and epoch are those of the content that it owns; epoch 0:
-- none yet.
ALTER TABLE catalog
    ADD COLUMN origins text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN storage text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN epoch bigint NOT NULL DEFAULT 0;

UPDATE catalog SET version = 5;

-- +goose Down

ALTER TABLE catalog DROP COLUMN epoch, DROP COLUMN storage, DROP COLUMN origins;

UPDATE catalog SET version = 4;
