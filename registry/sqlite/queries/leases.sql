-- name: LeaseGet :one
SELECT * FROM leases WHERE name = @name;

-- name: LeaseSet :exec
INSERT INTO leases (name, holder, until) VALUES (@name, @holder, @until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until;

-- name: LeaseRelease :exec
DELETE FROM leases WHERE name = @name AND holder = @holder;
