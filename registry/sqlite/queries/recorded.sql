-- name: RecordedGet :one
-- Returns the first event of a model that names a bundle, if that event does name it.
SELECT recorded.seq, CAST(json_extract(history.body, '$.time') AS TEXT) AS time
FROM recorded JOIN history ON history.seq = recorded.seq
WHERE recorded.model = @model AND recorded.bundle = @bundle AND history.model = recorded.model
    AND instr(json_extract(history.body, '$.evidence'), '"' || recorded.bundle || '"') > 0;

-- name: RecordedForget :exec
DELETE FROM recorded WHERE model = @model;

-- name: RecordedRestore :exec
INSERT INTO recorded (model, bundle, seq)
SELECT history.model, named.value, min(history.seq)
FROM history, json_each(history.body, '$.evidence') AS named
WHERE history.model = @model
GROUP BY history.model, named.value;
