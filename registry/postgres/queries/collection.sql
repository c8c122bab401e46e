-- name: CollectionLock :exec
-- Blocks writes to these tables until the end of the transaction; reads continue. The tables
-- are in the order in which other transactions lock them, to avoid deadlocks.
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
-- Clears the deletion mark. Changes 0 rows if the manifest is not recorded.
UPDATE manifests SET condemned = NULL WHERE repository = @repository AND digest = @digest;

-- name: BlobRescind :execrows
-- Clears the deletion mark. Changes 0 rows if the blob is not recorded.
UPDATE blobs SET condemned = NULL WHERE repository = @repository AND digest = @digest;

-- name: Unheld :many
-- Returns those of the digests that no repository has and no recipe needs, in their order.
SELECT u.digest::text AS digest FROM unnest(@digests::text[]) WITH ORDINALITY AS u (digest, place)
WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = u.digest COLLATE "C")
    AND NOT EXISTS (SELECT 1 FROM manifests m WHERE m.digest = u.digest COLLATE "C")
    AND NOT EXISTS (SELECT 1 FROM recipe_parts p WHERE p.part = u.digest COLLATE "C")
ORDER BY u.place;

-- name: CondemnedAdd :exec
-- Inserts in a fixed order, so that two transactions that add the same digests cannot
-- deadlock.
INSERT INTO condemned (digest, at)
SELECT DISTINCT d, greatest(@at::timestamptz, catalog_now()) FROM unnest(@digests::text[]) AS d ORDER BY d
ON CONFLICT (digest) DO NOTHING;

-- name: CondemnedGet :one
-- Returns the removal of a digest and the microseconds until it expires, unless it is the removal of its own bytes, for
-- which nobody waits.
SELECT coalesce(removal, '')::text AS removal,
    coalesce(extract(epoch FROM until - catalog_now()) * 1000000, 0)::bigint AS microseconds
FROM condemned c
WHERE c.digest = @digest AND NOT (c.removal IS NOT NULL AND EXISTS (SELECT 1 FROM recipes r WHERE r.digest = c.digest));

-- name: CondemnedRemove :execrows
-- Removes the mark, unless a removal is in progress.
DELETE FROM condemned WHERE digest = @digest AND removal IS NULL;

-- name: CondemnedTakeOver :exec
DELETE FROM condemned WHERE digest = @digest AND removal = @removal::text AND until <= catalog_now();

-- name: RemovalSpare :exec
-- Removes the marks of digests that a repository has or a recipe needs and that no process is removing, and abandoned
-- removals of own bytes.
DELETE FROM condemned c
WHERE c.digest = ANY (@digests::text[]) AND (c.removal IS NULL OR c.until <= @abandoned::timestamptz)
    AND (EXISTS (SELECT 1 FROM blobs b WHERE b.digest = c.digest) OR EXISTS (SELECT 1 FROM manifests m WHERE m.digest = c.digest)
        OR EXISTS (SELECT 1 FROM recipe_parts p WHERE p.part = c.digest)
        OR c.removal IS NOT NULL AND EXISTS (SELECT 1 FROM recipes r WHERE r.digest = c.digest));

-- name: RemovalBegin :many
UPDATE condemned c
SET removal = @removal::text, until = catalog_in(@lasting)
WHERE c.digest = ANY (@digests::text[]) AND c.at <= @before AND (c.removal IS NULL OR c.until <= @abandoned::timestamptz)
    AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = c.digest)
    AND NOT EXISTS (SELECT 1 FROM manifests m WHERE m.digest = c.digest)
    AND NOT EXISTS (SELECT 1 FROM recipe_parts p WHERE p.part = c.digest)
RETURNING c.digest;

-- name: RemovalBeginOwn :many
-- Begins the removal of the own bytes of digests that have a recipe, unless they are marked or being removed.
INSERT INTO condemned AS c (digest, at, removal, until)
SELECT r.digest, catalog_now(), @removal::text, catalog_in(@lasting) FROM recipes r WHERE r.digest = ANY (@digests::text[]) ORDER BY r.digest
ON CONFLICT (digest) DO UPDATE SET removal = excluded.removal, until = excluded.until
WHERE c.removal IS NOT NULL AND c.until <= @abandoned::timestamptz
RETURNING c.digest;

-- name: RemovalLasts :one
SELECT coalesce(min(until) >= catalog_in(@least), false)::boolean AS lasts
FROM condemned WHERE removal = @removal::text;

-- name: RemovalEnd :exec
DELETE FROM condemned WHERE removal = @removal::text AND digest = ANY (@digests::text[]);

-- name: RemovalUndo :exec
UPDATE condemned SET removal = NULL, until = NULL WHERE removal = @removal::text AND digest = ANY (@digests::text[]);

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
