-- name: CollectionLock :exec
-- Lets nobody write names until the end of the transaction; all read on. In the order in
-- which other transactions come to these tables, so that none waits for the other.
LOCK TABLE manifests, manifest_derived, blobs, tags IN SHARE ROW EXCLUSIVE MODE;

-- name: RepositoryList :many
-- In byte order.
SELECT repository FROM blobs
UNION
SELECT repository FROM manifests
ORDER BY repository;

-- name: HoldingManifests :many
SELECT digest, media_type, size, created, condemned FROM manifests WHERE repository = @repository ORDER BY digest;

-- name: HoldingBlobs :many
SELECT digest, size, created, condemned FROM blobs WHERE repository = @repository ORDER BY digest;

-- name: HoldingTags :many
SELECT tag, digest FROM tags WHERE repository = @repository ORDER BY tag;

-- name: ManifestCondemn :exec
UPDATE manifests SET condemned = @at::timestamptz WHERE repository = @repository AND digest = @digest AND condemned IS NULL;

-- name: BlobCondemn :exec
UPDATE blobs SET condemned = @at::timestamptz WHERE repository = @repository AND digest = @digest AND condemned IS NULL;

-- name: ManifestRescind :execrows
-- Rows: whether it is there.
UPDATE manifests SET condemned = NULL WHERE repository = @repository AND digest = @digest;

-- name: BlobRescind :execrows
-- Rows: whether it is there.
UPDATE blobs SET condemned = NULL WHERE repository = @repository AND digest = @digest;

-- name: Unheld :many
-- Those of the digests that no repository holds, in their order.
SELECT u.digest::text AS digest FROM unnest(@digests::text[]) WITH ORDINALITY AS u (digest, place)
WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = u.digest COLLATE "C")
    AND NOT EXISTS (SELECT 1 FROM manifests m WHERE m.digest = u.digest COLLATE "C")
ORDER BY u.place;

-- name: CondemnedAdd :exec
-- In one order, so that of two that add the same none waits for the other.
INSERT INTO condemned (digest, at)
SELECT DISTINCT d, @at::timestamptz FROM unnest(@digests::text[]) AS d ORDER BY d
ON CONFLICT (digest) DO NOTHING;

-- name: CondemnedGet :one
SELECT at FROM condemned WHERE digest = @digest;

-- name: CondemnedLock :one
-- Nobody rescinds it until the end of the transaction.
SELECT at FROM condemned WHERE digest = @digest FOR UPDATE;

-- name: CondemnedRemove :exec
DELETE FROM condemned WHERE digest = @digest;

-- name: CondemnedPage :many
-- A page of what was condemned up to a time, behind a digest.
SELECT digest FROM condemned WHERE at <= @before AND digest > @after ORDER BY digest LIMIT @page_size;
