-- Models are listed by name over all environments.

-- +goose Up

CREATE INDEX heads_model ON heads (model, environment);

PRAGMA user_version = 5;

-- +goose Down

DROP INDEX heads_model;

PRAGMA user_version = 4;
