-- name: ModelPage :many
-- Returns the heads of a page of models. Uses the index of models.
SELECT * FROM heads
WHERE model IN (SELECT DISTINCT h.model FROM heads h WHERE h.model > @after ORDER BY h.model LIMIT @page_size)
ORDER BY model, environment;

-- name: ModelPageOf :many
-- A page of the heads of one environment. Uses the primary key.
SELECT * FROM heads WHERE environment = @environment AND model > @after ORDER BY model LIMIT @page_size;

-- name: TagPage :many
-- A page of the tags of a repository whose manifests have a given type.
SELECT t.tag, t.digest FROM tags t
JOIN manifest_derived d ON d.repository = t.repository AND d.digest = t.digest
WHERE t.repository = @repository AND t.tag > @after AND d.artifact_type = @artifact_type
ORDER BY t.tag LIMIT @page_size;
