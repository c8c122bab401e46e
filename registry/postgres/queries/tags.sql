-- name: TagGet :one
SELECT digest FROM tags WHERE repository = @repository AND tag = @tag;

-- name: TagSetRecorded :execrows
-- Sets a tag if the manifest that it should point to is recorded. The row lock keeps a
-- concurrent transaction from deleting the manifest and its visible tags before this tag
-- exists.
INSERT INTO tags (repository, tag, digest)
SELECT m.repository, @tag::text, m.digest FROM manifests m
WHERE m.repository = @repository AND m.digest = @digest
FOR KEY SHARE
ON CONFLICT (repository, tag) DO UPDATE SET digest = excluded.digest;

-- name: TagSet :execrows
-- Sets a tag. Changes 0 rows if the tag is immutable and points to another digest.
INSERT INTO tags (repository, tag, digest) VALUES (@repository, @tag, @digest)
ON CONFLICT (repository, tag) DO UPDATE SET digest = excluded.digest
WHERE NOT @immutable::boolean OR tags.digest = excluded.digest;

-- name: TagList :many
SELECT tag FROM tags WHERE repository = @repository AND tag > @after ORDER BY tag LIMIT @page_size;
