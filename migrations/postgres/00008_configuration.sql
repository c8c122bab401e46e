-- What the processes of this catalog agreed on.

-- +goose Up

-- A part without a row was never recorded.
CREATE TABLE configuration (
    part text COLLATE "C" PRIMARY KEY CHECK (part IN ('environments', 'access', 'promoter')),
    digest text COLLATE "C" NOT NULL CHECK (digest <> '')
);

UPDATE catalog SET version = 8;

-- +goose Down

DROP TABLE configuration;

UPDATE catalog SET version = 7;
