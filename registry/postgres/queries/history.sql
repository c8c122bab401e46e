-- name: HistoryLast :one
SELECT body FROM history ORDER BY seq DESC LIMIT 1;

-- name: HistoryGet :one
SELECT body FROM history WHERE seq = @seq;

-- name: HistoryAppend :exec
INSERT INTO history (seq, body) VALUES (@seq, @body);

-- name: HistoryAscending :many
-- A page of rows with after < seq < before. An empty filter selects all. To be planned
-- with its arguments: which index serves depends on which filters are set.
SELECT body FROM history
WHERE (@environment::text = '' OR environment = @environment)
    AND (@model::text = '' OR model = @model)
    AND (@kind::text = '' OR kind = @kind)
    AND (@subject::text = '' OR (subject = @subject AND subject <> ''))
    AND seq > @after AND seq < @before
ORDER BY seq LIMIT @page_size;

-- name: HistoryDescending :many
-- As HistoryAscending, from the newest on.
SELECT body FROM history
WHERE (@environment::text = '' OR environment = @environment)
    AND (@model::text = '' OR model = @model)
    AND (@kind::text = '' OR kind = @kind)
    AND (@subject::text = '' OR (subject = @subject AND subject <> ''))
    AND seq > @after AND seq < @before
ORDER BY seq DESC LIMIT @page_size;
