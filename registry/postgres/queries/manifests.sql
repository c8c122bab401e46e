-- name: ManifestAdd :exec
-- What was recorded first stays; once more only rescinds. The update also locks the row,
-- so that whoever deletes the manifest comes before or after what follows, never between.
INSERT INTO manifests (repository, digest, media_type, size, created)
VALUES (@repository, @digest, @media_type, @size, @created)
ON CONFLICT (repository, digest) DO UPDATE SET condemned = NULL;

-- name: DerivedSet :exec
INSERT INTO manifest_derived (repository, digest, artifact_type, subject, annotations)
VALUES (@repository, @digest, @artifact_type, @subject, @annotations)
ON CONFLICT (repository, digest) DO UPDATE SET
    artifact_type = excluded.artifact_type,
    subject = excluded.subject,
    annotations = excluded.annotations;

-- name: DerivedClear :exec
DELETE FROM manifest_derived;

-- name: ManifestGet :one
SELECT m.repository, m.digest, m.media_type, m.size, m.condemned,
    coalesce(d.artifact_type, '') AS artifact_type,
    coalesce(d.subject, '') AS subject,
    coalesce(d.annotations, '') AS annotations
FROM manifests m
LEFT JOIN manifest_derived d ON d.repository = m.repository AND d.digest = m.digest
WHERE m.repository = @repository AND m.digest = @digest;

-- name: ManifestReferrers :many
SELECT m.repository, m.digest, m.media_type, m.size, d.artifact_type, d.subject, d.annotations
FROM manifest_derived d
JOIN manifests m ON m.repository = d.repository AND m.digest = d.digest
WHERE d.repository = @repository AND d.subject = @subject AND d.subject <> ''
    AND (@artifact_type::text = '' OR d.artifact_type = @artifact_type)
ORDER BY d.digest;

-- name: ManifestPage :many
-- The page after (repository, digest), in that order. The place is named for both tables:
-- a merge of the two would read one of them from its beginning.
SELECT m.repository, m.digest, m.media_type, m.size,
    coalesce(d.artifact_type, '') AS artifact_type,
    coalesce(d.subject, '') AS subject,
    coalesce(d.annotations, '') AS annotations
FROM manifests m
LEFT JOIN manifest_derived d ON d.repository = m.repository AND d.digest = m.digest
    AND (d.repository, d.digest) > (@repository::text, @digest::text)
WHERE (m.repository, m.digest) > (@repository::text, @digest::text)
ORDER BY m.repository, m.digest
LIMIT @page_size;
