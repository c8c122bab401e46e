-- Browsers in which people signed in.

-- +goose Up

CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL, -- SHA-256 of the secret, which is kept nowhere
    owner text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    issuer text COLLATE "C" NOT NULL,
    claims bytea NOT NULL, -- JSON
    created timestamptz NOT NULL,
    expires timestamptz NOT NULL
);

CREATE INDEX sessions_owner ON sessions (owner, created);
CREATE INDEX sessions_expires ON sessions (expires);

UPDATE catalog SET version = 11;

-- +goose Down

DROP TABLE sessions;

UPDATE catalog SET version = 10;
