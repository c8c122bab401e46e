-- When the history saw evidence first.

-- +goose Up

-- The first event of a model that names a bundle. It repeats what the history says, to be
-- found by the bundle.
CREATE TABLE recorded (
    model TEXT NOT NULL,
    bundle TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (model, bundle)
) STRICT, WITHOUT ROWID;

INSERT INTO recorded (model, bundle, seq)
SELECT history.model, named.value, min(history.seq)
FROM history, json_each(history.body, '$.evidence') AS named
GROUP BY history.model, named.value;

-- +goose StatementBegin
CREATE TRIGGER history_recorded AFTER INSERT ON history
BEGIN
    INSERT OR IGNORE INTO recorded (model, bundle, seq)
    SELECT new.model, named.value, new.seq FROM json_each(new.body, '$.evidence') AS named;
END;
-- +goose StatementEnd

PRAGMA user_version = 15;

-- +goose Down

DROP TRIGGER history_recorded;
DROP TABLE recorded;

PRAGMA user_version = 14;
