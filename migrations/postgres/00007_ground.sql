-- What decisions rest on, and where in the history they were made.

-- +goose Up

-- Numbers that only grow, each changed in the transaction of the event that it counts.
CREATE TABLE counters (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

INSERT INTO counters (name, value) VALUES ('restrictions', 0);

-- Evidence names events by their hash.
CREATE INDEX history_hash ON history ((substring(body FROM '"hash":"([^"]*)"')));

UPDATE catalog SET version = 7;

-- +goose Down

DROP INDEX history_hash;
DROP TABLE counters;

UPDATE catalog SET version = 6;
