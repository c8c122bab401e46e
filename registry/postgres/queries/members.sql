-- name: BlobAdd :exec
-- If the blob is already recorded, this only clears its deletion mark.
INSERT INTO blobs (repository, digest, size, created) VALUES (@repository, @digest, @size, coalesce(sqlc.narg(created)::timestamptz, catalog_now()))
ON CONFLICT (repository, digest) DO UPDATE SET condemned = NULL WHERE blobs.condemned IS NOT NULL;

-- name: BlobSize :one
SELECT size, condemned FROM blobs WHERE repository = @repository AND digest = @digest;
