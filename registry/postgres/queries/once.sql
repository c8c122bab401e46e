-- name: LeaseAcquire :execrows
-- Changes 1 row if the holder has the lease now, otherwise 0.
INSERT INTO leases (name, holder, until) VALUES (@name, @holder, catalog_in(@lasting))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.holder = excluded.holder OR leases.until <= catalog_now();

-- name: LeaseRelease :exec
DELETE FROM leases WHERE name = @name AND holder = @holder;

-- name: AnswerClaim :execrows
-- Changes 1 row if the key was free, otherwise 0. A row that is not free is locked, so that
-- a later read in the same transaction still finds it.
INSERT INTO answers (principal, key, request, claimant, until, status, type, body)
VALUES (@principal, @key, @request, @claimant, catalog_in(@lasting), 0, '', '')
ON CONFLICT (principal, key) DO UPDATE SET
    request = excluded.request,
    claimant = excluded.claimant,
    until = excluded.until,
    status = 0,
    type = '',
    body = ''
WHERE answers.until <= catalog_now();

-- name: AnswerGet :one
SELECT * FROM answers WHERE principal = @principal AND key = @key;

-- name: AnswerRenew :execrows
UPDATE answers SET until = catalog_in(@lasting)
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerSave :execrows
UPDATE answers SET until = catalog_in(@lasting), status = @status, type = @type, body = @body
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerSizes :many
-- Newest first.
SELECT key, length(body)::bigint AS bytes FROM answers
WHERE principal = @principal AND status <> 0 ORDER BY until DESC, key;

-- name: AnswerDelete :exec
DELETE FROM answers WHERE principal = @principal AND key = @key AND status <> 0;

-- name: AnswerFree :exec
DELETE FROM answers
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerForget :exec
-- Deletes at most 100 expired answers, so that one request does not pay for many. Skips
-- locked rows, so that requests do not wait for each other.
DELETE FROM answers
WHERE (principal, key) IN (
    SELECT a.principal, a.key FROM answers a WHERE a.until <= catalog_now()
    ORDER BY a.until LIMIT 100 FOR UPDATE SKIP LOCKED
);
