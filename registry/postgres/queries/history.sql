-- name: HistoryLast :one
SELECT body FROM history ORDER BY seq DESC LIMIT 1;

-- name: HistoryLastSeq :one
-- 0 before the first event.
SELECT coalesce(max(seq), 0)::bigint AS seq FROM history;

-- name: HistorySince :many
-- The events of a model in all environments.
SELECT body FROM history WHERE model = @model AND seq > @after ORDER BY seq;

-- name: HistoryGet :one
SELECT body FROM history WHERE seq = @seq;

-- name: HistoryNewestHash :one
-- The body is canonical JSON, in which no string has a quote that is not escaped.
SELECT substring(body FROM '"hash":"([^"]*)"')::text AS hash FROM history
WHERE environment = @environment AND model = @model ORDER BY seq DESC LIMIT 1;

-- name: HistoryAppend :exec
INSERT INTO history (seq, body) VALUES (@seq, @body);

-- name: HistoryAscending :many
-- A page of rows with after < seq < before. An empty filter selects all.
-- To be planned with its arguments, which makes constants of what does not depend on a
-- row. Rows are ordered by what is filtered and then by seq, so that only the index on
-- just that serves; BETWEEN hides that the former is one value. Ordered by seq alone, the
-- server may walk along all rows in the hope of meeting those that are wanted, and does
-- where they are many, but long ago.
SELECT body FROM history
WHERE (@environment::text = '' OR environment BETWEEN @environment AND @environment)
    AND (@model::text = '' OR model BETWEEN @model AND @model)
    AND (@kind::text = '' OR kind BETWEEN @kind AND @kind)
    AND (@subject::text = '' OR (subject BETWEEN @subject AND @subject AND subject <> ''))
    AND seq > @after AND seq < @before
ORDER BY
    CASE WHEN @subject = '' THEN '' ELSE subject END,
    CASE WHEN @kind = '' OR @model <> '' OR @subject <> '' THEN '' ELSE kind END,
    CASE WHEN @environment = '' OR @subject <> '' THEN '' ELSE environment END,
    CASE WHEN @model = '' OR @subject <> '' THEN '' ELSE model END,
    seq
LIMIT @page_size;

-- name: HistoryDescending :many
-- As HistoryAscending, from the newest on.
SELECT body FROM history
WHERE (@environment::text = '' OR environment BETWEEN @environment AND @environment)
    AND (@model::text = '' OR model BETWEEN @model AND @model)
    AND (@kind::text = '' OR kind BETWEEN @kind AND @kind)
    AND (@subject::text = '' OR (subject BETWEEN @subject AND @subject AND subject <> ''))
    AND seq > @after AND seq < @before
ORDER BY
    CASE WHEN @subject = '' THEN '' ELSE subject END DESC,
    CASE WHEN @kind = '' OR @model <> '' OR @subject <> '' THEN '' ELSE kind END DESC,
    CASE WHEN @environment = '' OR @subject <> '' THEN '' ELSE environment END DESC,
    CASE WHEN @model = '' OR @subject <> '' THEN '' ELSE model END DESC,
    seq DESC
LIMIT @page_size;

-- name: HistoryOfHash :many
-- As HistoryAscending, for one hash, by its index.
SELECT body FROM history
WHERE substring(body FROM '"hash":"([^"]*)"') = @hash::text
    AND (@environment::text = '' OR environment = @environment)
    AND (@model::text = '' OR model = @model)
    AND (@kind::text = '' OR kind = @kind)
    AND (@subject::text = '' OR subject = @subject)
    AND seq > @after AND seq < @before
LIMIT 1;
