-- name: LeaseGet :one
SELECT * FROM leases WHERE name = @name;

-- name: LeaseSet :exec
INSERT INTO leases (name, holder, until) VALUES (@name, @holder, @until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until;

-- name: LeaseRelease :exec
DELETE FROM leases WHERE name = @name AND holder = @holder;

-- name: AnswerGet :one
SELECT * FROM answers WHERE principal = @principal AND key = @key;

-- name: AnswerClaim :exec
INSERT INTO answers (principal, key, request, claimant, until, status, type, body)
VALUES (@principal, @key, @request, @claimant, @until, 0, '', x'')
ON CONFLICT (principal, key) DO UPDATE SET
    request = excluded.request,
    claimant = excluded.claimant,
    until = excluded.until,
    status = 0,
    type = '',
    body = x'';

-- name: AnswerRenew :execrows
UPDATE answers SET until = @until
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerSave :execrows
UPDATE answers SET until = @until, status = @status, type = @type, body = @body
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerSizes :many
-- Newest first.
SELECT key, CAST(length(body) AS INTEGER) AS bytes FROM answers
WHERE principal = @principal AND status <> 0 ORDER BY until DESC, key;

-- name: AnswerDelete :exec
DELETE FROM answers WHERE principal = @principal AND key = @key AND status <> 0;

-- name: AnswerFree :exec
DELETE FROM answers
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerForget :exec
-- Deletes at most 100 expired answers, so that one request does not pay for many.
DELETE FROM answers
WHERE (principal, key) IN (SELECT a.principal, a.key FROM answers a WHERE a.until <= @now ORDER BY a.until LIMIT 100);
