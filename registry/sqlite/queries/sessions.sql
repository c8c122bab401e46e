-- name: SessionCreate :exec
INSERT INTO sessions (id, hash, owner, token, issuer, claims, created, expires)
VALUES (@id, @hash, @owner, @token, @issuer, @claims, @created, @expires);

-- name: SessionForget :exec
-- Deletes at most 100 expired sessions, so that one request does not pay for many.
DELETE FROM sessions
WHERE id IN (SELECT s.id FROM sessions s WHERE s.expires <= @now ORDER BY s.expires LIMIT 100);

-- name: SessionTrim :exec
-- Keeps the newest sessions of an owner.
DELETE FROM sessions
WHERE id IN (
    SELECT s.id FROM sessions s WHERE s.owner = @owner
    ORDER BY s.created DESC, s.id DESC LIMIT -1 OFFSET @keep
);

-- name: SessionGet :one
SELECT * FROM sessions WHERE id = @id;

-- name: SessionEnd :exec
DELETE FROM sessions WHERE id = @id;

-- name: SessionEndAll :exec
DELETE FROM sessions;

-- name: SessionEndOf :execrows
DELETE FROM sessions WHERE owner = @owner;
