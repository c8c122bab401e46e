-- name: ManifestAdd :exec
-- If the manifest is already recorded, this only clears its deletion mark.
INSERT INTO manifests (repository, digest, media_type, size, created, pusher)
VALUES (@repository, @digest, @media_type, @size, @created, @pusher)
ON CONFLICT (repository, digest) DO UPDATE SET condemned = 0 WHERE manifests.condemned <> 0;

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
SELECT m.repository, m.digest, m.media_type, m.size, m.pusher, m.condemned,
    coalesce(d.artifact_type, '') AS artifact_type,
    coalesce(d.subject, '') AS subject,
    coalesce(d.annotations, '') AS annotations
FROM manifests m
LEFT JOIN manifest_derived d ON d.repository = m.repository AND d.digest = m.digest
WHERE m.repository = @repository AND m.digest = @digest;

-- name: ReferrerSizes :many
-- The sizes of the annotations of referrers, after a digest.
SELECT d.digest, CAST(octet_length(d.annotations) AS INTEGER) AS bytes
FROM manifest_derived d
WHERE d.repository = @repository AND d.subject = @subject AND d.subject <> '' AND d.digest > @after
    AND (CAST(@artifact_type AS TEXT) = '' OR d.artifact_type = @artifact_type)
ORDER BY d.digest LIMIT @page_size;

-- name: ReferrerCount :one
-- Counts the referrers of a subject that a principal pushed.
SELECT count(*) FROM manifest_derived d
JOIN manifests m ON m.repository = d.repository AND m.digest = d.digest
WHERE d.repository = @repository AND d.subject = @subject AND d.subject <> '' AND m.pusher = @pusher;

-- name: ManifestReferrers :many
-- The referrers after one digest, up to and including another.
SELECT m.repository, m.digest, m.media_type, m.size, m.pusher, d.artifact_type, d.subject, d.annotations
FROM manifest_derived d
JOIN manifests m ON m.repository = d.repository AND m.digest = d.digest
WHERE d.repository = @repository AND d.subject = @subject AND d.subject <> ''
    AND d.digest > @after AND d.digest <= @last
    AND (CAST(@artifact_type AS TEXT) = '' OR d.artifact_type = @artifact_type)
ORDER BY d.digest;

-- name: ManifestPage :many
-- The page after (repository, digest), in that order.
SELECT m.repository, m.digest, m.media_type, m.size, m.pusher,
    coalesce(d.artifact_type, '') AS artifact_type,
    coalesce(d.subject, '') AS subject,
    coalesce(d.annotations, '') AS annotations
FROM manifests m
LEFT JOIN manifest_derived d ON d.repository = m.repository AND d.digest = m.digest
WHERE m.repository >= @repository AND (m.repository > @repository OR m.digest > @digest)
ORDER BY m.repository, m.digest
LIMIT @page_size;
