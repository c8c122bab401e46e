-- name: BlobAdd :exec
INSERT INTO blobs (repository, digest, size) VALUES (@repository, @digest, @size)
ON CONFLICT (repository, digest) DO NOTHING;

-- name: BlobSize :one
SELECT size FROM blobs WHERE repository = @repository AND digest = @digest;
