-- A page of the names of repositories that have manifests, between two names. Takes one lookup in the primary key per name,
-- however many manifests a repository has. It is not in queries/, because sqlc does not resolve the inner reference to names.
WITH RECURSIVE names (place, repository) AS (
    SELECT 1, min(m.repository) FROM manifests m WHERE m.repository >= ?1 AND m.repository < ?2
    UNION ALL
    SELECT names.place + 1, (SELECT min(m.repository) FROM manifests m WHERE m.repository > names.repository AND m.repository < ?2)
    FROM names WHERE names.repository IS NOT NULL AND names.place < ?3
)
SELECT repository FROM names WHERE repository IS NOT NULL ORDER BY place
