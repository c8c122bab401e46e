-- name: RecipeGet :one
SELECT * FROM recipes WHERE digest = @digest;

-- name: RecipePage :many
SELECT digest FROM recipes WHERE digest > @after ORDER BY digest LIMIT @page_size;

-- name: RecipeRefused :one
-- Reports whether a digest has a recipe or is a part, or whether a part has a recipe, or whether any of them has a removal.
SELECT (EXISTS (SELECT 1 FROM recipes r WHERE r.digest = @digest OR r.digest = ANY (@parts::text[]))
    OR EXISTS (SELECT 1 FROM recipe_parts p WHERE p.part = @digest)
    OR EXISTS (SELECT 1 FROM condemned c WHERE (c.digest = @digest OR c.digest = ANY (@parts::text[])) AND c.removal IS NOT NULL))::boolean AS refused;

-- name: RecipeAdd :exec
INSERT INTO recipes (digest, size, created, pieces) VALUES (@digest, @size, catalog_now(), @pieces);

-- name: RecipePartsAdd :exec
INSERT INTO recipe_parts (part, digest) SELECT p, @digest FROM unnest(@parts::text[]) AS p;

-- name: RecipeDelete :exec
DELETE FROM recipes WHERE digest = ANY (@digests::text[]);

-- name: RecipePartsDelete :exec
DELETE FROM recipe_parts WHERE digest = ANY (@digests::text[]);
