-- When tokens were last used.

-- +goose Up

-- used is to the hour or so, so that no request costs a write; 0: never.
ALTER TABLE tokens ADD COLUMN used INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 9;

-- +goose Down

ALTER TABLE tokens DROP COLUMN used;

PRAGMA user_version = 8;
