-- name: RecordedList :many
-- Returns the first events of a model that name the given bundles, if these events do name
-- them. Only the evidence field of an event can contain the quoted digest of a bundle: in
-- other texts quotes are escaped.
SELECT recorded.bundle, recorded.seq, substring(history.body FROM '"time":"([^"]*)"')::text AS time
FROM recorded JOIN history ON history.seq = recorded.seq
WHERE recorded.model = @model AND recorded.bundle = ANY(@bundles::text[]) AND history.model = recorded.model
    AND strpos(history.body, '"' || recorded.bundle || '"') > 0;

-- name: RecordedForget :exec
DELETE FROM recorded WHERE model = @model;

-- name: RecordedRestore :exec
INSERT INTO recorded (model, bundle, seq)
SELECT history.model, named.bundle, min(history.seq)
FROM history, history_bundles(history.body) AS named (bundle)
WHERE history.model = @model
GROUP BY history.model, named.bundle;
