-- name: ManifestDelete :execrows
DELETE FROM manifests WHERE repository = @repository AND digest = @digest;

-- name: DerivedDelete :exec
DELETE FROM manifest_derived WHERE repository = @repository AND digest = @digest;

-- name: TagDeleteAll :exec
-- Deletes all tags of one manifest.
DELETE FROM tags WHERE repository = @repository AND digest = @digest;

-- name: TagDelete :execrows
DELETE FROM tags WHERE repository = @repository AND tag = @tag;

-- name: BlobRemove :execrows
DELETE FROM blobs WHERE repository = @repository AND digest = @digest;
