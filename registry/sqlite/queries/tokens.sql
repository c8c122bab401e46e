-- name: TokenCreate :exec
INSERT INTO tokens (id, name, hash, grants, created, expires, revoked)
VALUES (@id, @name, @hash, @grants, @created, @expires, @revoked);

-- name: TokenGet :one
SELECT * FROM tokens WHERE id = @id;

-- name: TokenList :many
SELECT * FROM tokens ORDER BY id;

-- name: TokenRevoke :execrows
-- Keeps the time of an earlier revocation.
UPDATE tokens SET revoked = CASE revoked WHEN 0 THEN CAST(@at AS INTEGER) ELSE revoked END WHERE id = @id;

-- name: TokenUse :execrows
-- Keeps the later time.
UPDATE tokens SET used = max(used, CAST(@at AS INTEGER)) WHERE id = @id;

-- name: SecretOffer :exec
INSERT INTO secrets (name, value) VALUES (@name, @value) ON CONFLICT (name) DO NOTHING;

-- name: SecretGet :one
SELECT value FROM secrets WHERE name = @name;
