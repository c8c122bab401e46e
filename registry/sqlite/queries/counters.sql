-- name: CounterGet :one
SELECT value FROM counters WHERE name = @name;

-- name: CounterAdd :exec
UPDATE counters SET value = value + @n WHERE name = @name;
