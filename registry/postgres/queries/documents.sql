-- name: DocumentPut :exec
INSERT INTO documents (kind, name, body) VALUES (@kind, @name, @body)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body;

-- name: DocumentGet :one
SELECT body FROM documents WHERE kind = @kind AND name = @name;

-- name: DocumentPage :many
SELECT name, body FROM documents WHERE kind = @kind AND name > @after ORDER BY name LIMIT @page_size;

-- name: DocumentDelete :execrows
DELETE FROM documents WHERE kind = @kind AND name = @name;

-- name: DocumentCount :one
SELECT COUNT(*) FROM (
    SELECT 1 FROM documents WHERE kind = @kind AND name > @after AND name < @before LIMIT @most
) AS found;

-- name: DocumentDeleteWith :execrows
DELETE FROM documents WHERE kind = @kind AND name = @name AND body = @body;
