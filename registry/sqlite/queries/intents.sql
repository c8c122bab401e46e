-- name: IntentBegin :exec
INSERT INTO intents (environment, model, source, release, begun)
VALUES (@environment, @model, @source, @release, @begun)
ON CONFLICT (environment, model) DO UPDATE SET
    source = excluded.source,
    release = excluded.release,
    begun = excluded.begun;

-- name: IntentEndFor :exec
DELETE FROM intents WHERE environment = @environment AND model = @model AND release = @release;

-- name: IntentAbandon :exec
DELETE FROM intents WHERE environment = @environment AND model = @model AND release = @release AND begun = @begun;

-- name: IntentList :many
SELECT * FROM intents ORDER BY environment, model;
