-- name: CounterGet :one
SELECT value FROM counters WHERE name = @name;

-- name: CounterAdd :exec
INSERT INTO counters (name, value) VALUES (@name, @n)
ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value;
