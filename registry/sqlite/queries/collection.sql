-- name: RepositoryList :many
-- In byte order. Reads both indexes.
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
-- Clears the deletion mark. Changes 0 rows if the manifest is not recorded.
UPDATE manifests SET condemned = 0 WHERE repository = @repository AND digest = @digest;

-- name: BlobRescind :execrows
-- Clears the deletion mark. Changes 0 rows if the blob is not recorded.
UPDATE blobs SET condemned = 0 WHERE repository = @repository AND digest = @digest;

-- name: Held :one
-- Reports whether any repository has a digest, or a recipe needs it.
SELECT CAST(EXISTS (SELECT 1 FROM blobs b WHERE b.digest = @digest)
    OR EXISTS (SELECT 1 FROM manifests m WHERE m.digest = @digest)
    OR EXISTS (SELECT 1 FROM recipe_parts p WHERE p.part = @digest) AS BOOLEAN) AS held;

-- name: CondemnedAdd :exec
INSERT INTO condemned (digest, at) VALUES (@digest, @at) ON CONFLICT (digest) DO NOTHING;

-- name: CondemnedGet :one
SELECT * FROM condemned WHERE digest = @digest;

-- name: CondemnedRemove :execrows
-- Removes the mark, unless a removal is in progress.
DELETE FROM condemned WHERE digest = @digest AND removal = '';

-- name: CondemnedTakeOver :exec
DELETE FROM condemned WHERE digest = @digest AND removal = @removal AND removal <> '' AND until <= @now;

-- name: RemovalOf :one
-- Returns the mark of a digest, unless it is the removal of its own bytes, for which nobody waits.
SELECT removal, until FROM condemned c
WHERE c.digest = @digest AND NOT (c.removal <> '' AND EXISTS (SELECT 1 FROM recipes r WHERE r.digest = c.digest));

-- name: RemovalBegin :exec
UPDATE condemned SET removal = @removal, until = @until WHERE digest = @digest;

-- name: RemovalSpare :exec
DELETE FROM condemned WHERE digest = @digest;

-- name: RemovalUntil :one
-- Returns when the first digest of a removal expires, or 0 if the removal has no digests.
SELECT CAST(coalesce(min(until), 0) AS INTEGER) AS until FROM condemned WHERE removal = @removal AND removal <> '';

-- name: RemovalEnd :exec
DELETE FROM condemned WHERE digest = @digest AND removal = @removal;

-- name: RemovalUndo :exec
UPDATE condemned SET removal = '', until = 0 WHERE digest = @digest AND removal = @removal;

-- name: CondemnedPage :many
-- A page of the digests that were marked up to a time, after a digest.
SELECT digest FROM condemned WHERE at <= @before AND digest > @after ORDER BY digest LIMIT @page_size;

-- name: HeldDigests :many
-- The subqueries read each index from a digest on, only as far as the page needs.
SELECT digest FROM (SELECT DISTINCT b.digest FROM blobs b WHERE b.digest > @after AND b.created >= @since ORDER BY b.digest LIMIT @page_size) AS held_blobs
UNION
SELECT digest FROM (SELECT DISTINCT m.digest FROM manifests m WHERE m.digest > @after AND m.created >= @since ORDER BY m.digest LIMIT @page_size) AS held_manifests
ORDER BY digest LIMIT @page_size;

-- name: Holders :many
SELECT repository FROM blobs WHERE blobs.digest = @digest
UNION
SELECT repository FROM manifests WHERE manifests.digest = @digest
ORDER BY repository;
