-- Who pushed a manifest, so that what one principal attaches to a subject has a bound.

-- +goose Up

-- Empty: the service itself, or a manifest from before this step.
ALTER TABLE manifests ADD COLUMN pusher text COLLATE "C" NOT NULL DEFAULT '';

UPDATE catalog SET version = 9;

-- +goose Down

ALTER TABLE manifests DROP COLUMN pusher;

UPDATE catalog SET version = 8;
