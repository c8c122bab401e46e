-- name: BlobAdd :exec
-- Once more only rescinds.
INSERT INTO blobs (repository, digest, size, created) VALUES (@repository, @digest, @size, @created)
ON CONFLICT (repository, digest) DO UPDATE SET condemned = NULL WHERE blobs.condemned IS NOT NULL;

-- name: BlobSize :one
SELECT size, condemned FROM blobs WHERE repository = @repository AND digest = @digest;
