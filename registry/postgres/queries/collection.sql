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
UPDATE manifests SET condemned = greatest(@at::timestamptz, catalog_now()) WHERE repository = @repository AND digest = @digest AND condemned IS NULL;

-- name: BlobCondemn :exec
UPDATE blobs SET condemned = greatest(@at::timestamptz, catalog_now()) WHERE repository = @repository AND digest = @digest AND condemned IS NULL;

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
SELECT DISTINCT d, greatest(@at::timestamptz, catalog_now()) FROM unnest(@digests::text[]) AS d ORDER BY d
ON CONFLICT (digest) DO NOTHING;

-- name: CondemnedGet :one
-- The removal of a digest, and how many microseconds are left of it.
SELECT coalesce(removal, '')::text AS removal,
    coalesce(extract(epoch FROM until - catalog_now()) * 1000000, 0)::bigint AS microseconds
FROM condemned WHERE digest = @digest;

-- name: CondemnedRemove :execrows
-- Unless a removal is under way.
DELETE FROM condemned WHERE digest = @digest AND removal IS NULL;

-- name: CondemnedTakeOver :exec
DELETE FROM condemned WHERE digest = @digest AND removal = @removal::text AND until <= catalog_now();

-- name: RemovalSpare :exec
-- Forgets those that a repository holds and that nobody is removing.
DELETE FROM condemned c
WHERE c.digest = ANY (@digests::text[]) AND (c.removal IS NULL OR c.until <= @abandoned::timestamptz)
    AND (EXISTS (SELECT 1 FROM blobs b WHERE b.digest = c.digest) OR EXISTS (SELECT 1 FROM manifests m WHERE m.digest = c.digest));

-- name: RemovalBegin :many
UPDATE condemned c
SET removal = @removal::text, until = catalog_in(@lasting)
WHERE c.digest = ANY (@digests::text[]) AND c.at <= @before AND (c.removal IS NULL OR c.until <= @abandoned::timestamptz)
    AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = c.digest)
    AND NOT EXISTS (SELECT 1 FROM manifests m WHERE m.digest = c.digest)
RETURNING c.digest;

-- name: RemovalLasts :one
SELECT coalesce(min(until) >= catalog_in(@least), false)::boolean AS lasts
FROM condemned WHERE removal = @removal::text;

-- name: RemovalEnd :exec
DELETE FROM condemned WHERE removal = @removal::text AND digest = ANY (@digests::text[]);

-- name: RemovalUndo :exec
UPDATE condemned SET removal = NULL, until = NULL WHERE removal = @removal::text AND digest = ANY (@digests::text[]);

-- name: CondemnedPage :many
-- A page of what was condemned up to a time, behind a digest.
SELECT digest FROM condemned WHERE at <= @before AND digest > @after ORDER BY digest LIMIT @page_size;

-- name: HeldDigests :many
-- Each index is read from a digest on, and no further than the page needs.
SELECT digest FROM (SELECT DISTINCT b.digest FROM blobs b WHERE b.digest > @after AND b.created >= @since ORDER BY b.digest LIMIT @page_size) AS held_blobs
UNION
SELECT digest FROM (SELECT DISTINCT m.digest FROM manifests m WHERE m.digest > @after AND m.created >= @since ORDER BY m.digest LIMIT @page_size) AS held_manifests
ORDER BY digest LIMIT @page_size;

-- name: Holders :many
SELECT repository FROM blobs WHERE blobs.digest = @digest
UNION
SELECT repository FROM manifests WHERE manifests.digest = @digest
ORDER BY repository;
