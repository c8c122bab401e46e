-- name: RepositoryList :many
-- In byte order, from both indexes.
SELECT DISTINCT repository FROM blobs
UNION
SELECT DISTINCT repository FROM manifests
ORDER BY repository;

-- name: HoldingManifests :many
SELECT digest, media_type, size, created, condemned FROM manifests WHERE repository = @repository ORDER BY digest;

-- name: HoldingBlobs :many
SELECT digest, size, created, condemned FROM blobs WHERE repository = @repository ORDER BY digest;

-- name: HoldingTags :many
SELECT tag, digest FROM tags WHERE repository = @repository ORDER BY tag;

-- name: ManifestCondemn :exec
UPDATE manifests SET condemned = @at WHERE repository = @repository AND digest = @digest AND condemned = 0;

-- name: BlobCondemn :exec
UPDATE blobs SET condemned = @at WHERE repository = @repository AND digest = @digest AND condemned = 0;

-- name: ManifestRescind :execrows
-- Rows: whether it is there.
UPDATE manifests SET condemned = 0 WHERE repository = @repository AND digest = @digest;

-- name: BlobRescind :execrows
-- Rows: whether it is there.
UPDATE blobs SET condemned = 0 WHERE repository = @repository AND digest = @digest;

-- name: Held :one
-- Whether any repository holds a digest.
SELECT CAST(EXISTS (SELECT 1 FROM blobs b WHERE b.digest = @digest)
    OR EXISTS (SELECT 1 FROM manifests m WHERE m.digest = @digest) AS BOOLEAN) AS held;

-- name: CondemnedAdd :exec
INSERT INTO condemned (digest, at) VALUES (@digest, @at) ON CONFLICT (digest) DO NOTHING;

-- name: CondemnedGet :one
SELECT at FROM condemned WHERE digest = @digest;

-- name: CondemnedRemove :exec
DELETE FROM condemned WHERE digest = @digest;

-- name: CondemnedPage :many
-- A page of what was condemned up to a time, behind a digest.
SELECT digest FROM condemned WHERE at <= @before AND digest > @after ORDER BY digest LIMIT @page_size;
