-- name: RecipeGet :one
SELECT * FROM recipes WHERE digest = @digest;

-- name: RecipePage :many
SELECT digest FROM recipes WHERE digest > @after ORDER BY digest LIMIT @page_size;

-- name: RecipeHas :one
SELECT CAST(EXISTS (SELECT 1 FROM recipes WHERE digest = @digest) AS BOOLEAN) AS has;

-- name: RecipeIsPart :one
SELECT CAST(EXISTS (SELECT 1 FROM recipe_parts WHERE part = @part) AS BOOLEAN) AS is_part;

-- name: RecipeAdd :exec
INSERT INTO recipes (digest, size, created, pieces) VALUES (@digest, @size, @created, @pieces);

-- name: RecipePartAdd :exec
INSERT INTO recipe_parts (part, digest) VALUES (@part, @digest);

-- name: RecipeDelete :exec
DELETE FROM recipes WHERE digest = @digest;

-- name: RecipePartsDelete :exec
DELETE FROM recipe_parts WHERE digest = @digest;
