-- When tokens were last used.

-- +goose Up

-- used is to the hour or so, so that no request costs a write; null: never.
ALTER TABLE tokens ADD COLUMN used timestamptz;

UPDATE catalog SET version = 4;

-- +goose Down

ALTER TABLE tokens DROP COLUMN used;

UPDATE catalog SET version = 3;
