-- name: HeadGet :one
SELECT * FROM heads WHERE environment = @environment AND model = @model;

-- name: HeadList :many
SELECT * FROM heads
WHERE (CAST(@environment AS TEXT) = '' OR environment = @environment)
    AND (CAST(@model AS TEXT) = '' OR model = @model)
ORDER BY environment, model;

-- name: HeadSet :exec
INSERT INTO heads (environment, model, release, version, since, hold)
VALUES (@environment, @model, @release, @version, @since, @hold)
ON CONFLICT (environment, model) DO UPDATE SET
    release = excluded.release,
    version = excluded.version,
    since = excluded.since,
    hold = excluded.hold;
