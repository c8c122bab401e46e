-- name: LeaseAcquire :execrows
-- Rows: whether the holder has it.
INSERT INTO leases (name, holder, until) VALUES (@name, @holder, catalog_in(@lasting))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.holder = excluded.holder OR leases.until <= catalog_now();

-- name: LeaseRelease :exec
DELETE FROM leases WHERE name = @name AND holder = @holder;

-- name: AnswerClaim :execrows
-- Rows: whether the key was free. The row of one that is not is locked, so that it is
-- still there for whoever reads it next in the transaction.
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

-- name: AnswerFree :exec
DELETE FROM answers
WHERE principal = @principal AND key = @key AND claimant = @claimant AND status = 0;

-- name: AnswerForget :exec
-- Some of those that have run out, so that no request pays for many, and none that
-- somebody works on: nobody waits for anybody.
DELETE FROM answers
WHERE (principal, key) IN (
    SELECT a.principal, a.key FROM answers a WHERE a.until <= catalog_now()
    ORDER BY a.until LIMIT 100 FOR UPDATE SKIP LOCKED
);
