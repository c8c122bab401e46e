-- name: TagGet :one
SELECT digest FROM tags WHERE repository = @repository AND tag = @tag;

-- name: TagSetRecorded :execrows
-- Sets a tag if the manifest that it shall name is recorded. The lock lets nobody delete
-- the manifest, and with it the tags that he sees, before this one is there.
INSERT INTO tags (repository, tag, digest)
SELECT m.repository, @tag::text, m.digest FROM manifests m
WHERE m.repository = @repository AND m.digest = @digest
FOR KEY SHARE
ON CONFLICT (repository, tag) DO UPDATE SET digest = excluded.digest;

-- name: TagSet :execrows
-- Sets a tag, unless it is not to be moved and names another digest: then no row.
INSERT INTO tags (repository, tag, digest) VALUES (@repository, @tag, @digest)
ON CONFLICT (repository, tag) DO UPDATE SET digest = excluded.digest
WHERE NOT @immutable::boolean OR tags.digest = excluded.digest;

-- name: TagList :many
SELECT tag FROM tags WHERE repository = @repository AND tag > @after ORDER BY tag LIMIT @page_size;
