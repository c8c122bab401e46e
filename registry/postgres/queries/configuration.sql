-- name: ConfigurationList :many
SELECT * FROM configuration;

-- name: ConfigurationSet :exec
INSERT INTO configuration (part, digest) VALUES (@part, @digest)
ON CONFLICT (part) DO UPDATE SET digest = excluded.digest;
