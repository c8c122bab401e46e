-- name: HeadGet :one
SELECT * FROM heads WHERE environment = @environment AND model = @model;

-- name: HeadList :many
-- An empty filter selects all. This must be planned with its arguments.
SELECT * FROM heads
WHERE (@environment::text = '' OR environment = @environment)
    AND (@model::text = '' OR model = @model)
ORDER BY environment, model;

-- name: HeadSet :exec
INSERT INTO heads (environment, model, release, version, since, hold)
VALUES (@environment, @model, @release, @version, @since, @hold)
ON CONFLICT (environment, model) DO UPDATE SET
    release = excluded.release,
    version = excluded.version,
    since = excluded.since,
    hold = excluded.hold;
