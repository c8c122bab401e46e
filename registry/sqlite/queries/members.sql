-- name: BlobAdd :exec
-- If the blob is already recorded, this only clears its deletion mark.
INSERT INTO blobs (repository, digest, size, created) VALUES (@repository, @digest, @size, @created)
ON CONFLICT (repository, digest) DO UPDATE SET condemned = 0 WHERE blobs.condemned <> 0;

-- name: BlobSize :one
SELECT size, condemned FROM blobs WHERE repository = @repository AND digest = @digest;
