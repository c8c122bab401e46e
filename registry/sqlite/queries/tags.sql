-- name: TagGet :one
SELECT digest FROM tags WHERE repository = @repository AND tag = @tag;

-- name: TagSetRecorded :execrows
-- Sets a tag if the manifest that it should point to is recorded.
INSERT INTO tags (repository, tag, digest)
SELECT m.repository, CAST(@tag AS TEXT), m.digest FROM manifests m
WHERE m.repository = @repository AND m.digest = @digest
ON CONFLICT (repository, tag) DO UPDATE SET digest = excluded.digest;

-- name: TagSet :exec
INSERT INTO tags (repository, tag, digest) VALUES (@repository, @tag, @digest)
ON CONFLICT (repository, tag) DO UPDATE SET digest = excluded.digest;

-- name: TagList :many
-- A negative page size means all.
SELECT tag FROM tags WHERE repository = @repository AND tag > @after ORDER BY tag LIMIT @page_size;
