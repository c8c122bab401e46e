-- When the history saw evidence first.

-- +goose Up

-- The first event of a model that names a bundle. It repeats what the history says, to be
-- found by the bundle.
CREATE TABLE recorded (
    model text COLLATE "C" NOT NULL,
    bundle text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (model, bundle)
);

-- The bundles are cut out of the text, as the columns of history are.
-- +goose StatementBegin
CREATE FUNCTION history_bundles(body text) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT found[1] FROM regexp_matches(substring(body FROM '"evidence":\[([^]]*)\]'), '"([^"]*)"', 'g') AS found
$$;
-- +goose StatementEnd

INSERT INTO recorded (model, bundle, seq)
SELECT history.model, named.bundle, min(history.seq)
FROM history, history_bundles(history.body) AS named (bundle)
GROUP BY history.model, named.bundle;

-- +goose StatementBegin
CREATE FUNCTION history_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO recorded (model, bundle, seq)
    SELECT NEW.model, named.bundle, NEW.seq FROM history_bundles(NEW.body) AS named (bundle)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER history_recorded AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION history_record();

UPDATE catalog SET version = 10;

-- +goose Down

DROP TRIGGER history_recorded ON history;
DROP FUNCTION history_record();
DROP FUNCTION history_bundles(text);
DROP TABLE recorded;

UPDATE catalog SET version = 9;
