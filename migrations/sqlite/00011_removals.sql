-- Removals of bytes outside of transactions. Times are microseconds since 1970-01-01 UTC.

-- +goose Up

-- removal is the identifier of the removal of these bytes that is under way, and until when
-- it lasts; empty and 0: none is.
ALTER TABLE condemned ADD COLUMN removal TEXT NOT NULL DEFAULT '';
ALTER TABLE condemned ADD COLUMN until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX condemned_removal ON condemned (removal) WHERE removal <> '';

PRAGMA user_version = 11;

-- +goose Down

DROP INDEX condemned_removal;
ALTER TABLE condemned DROP COLUMN until;
ALTER TABLE condemned DROP COLUMN removal;

PRAGMA user_version = 10;
