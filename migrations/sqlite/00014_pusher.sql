-- Who pushed a manifest, so that what one principal attaches to a subject has a bound.

-- +goose Up

-- Empty: the service itself, or a manifest from before this step.
ALTER TABLE manifests ADD COLUMN pusher TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 14;

-- +goose Down

ALTER TABLE manifests DROP COLUMN pusher;

PRAGMA user_version = 13;
