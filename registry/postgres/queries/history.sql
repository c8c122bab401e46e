-- name: HistoryLast :one
SELECT body FROM history ORDER BY seq DESC LIMIT 1;

-- name: HistoryLastSeq :one
-- Returns 0 before the first event.
SELECT coalesce(max(seq), 0)::bigint AS seq FROM history;

-- name: HistorySince :many
-- Returns the events of a model in all environments.
SELECT body FROM history WHERE model = @model AND seq > @after ORDER BY seq;

-- name: HistoryGet :one
SELECT body FROM history WHERE seq = @seq;

-- name: HistoryNewestHash :one
-- The body is canonical JSON, so a quote inside a string is always escaped.
SELECT substring(body FROM '"hash":"([^"]*)"')::text AS hash FROM history
WHERE environment = @environment AND model = @model ORDER BY seq DESC LIMIT 1;

-- name: HistoryAppend :exec
INSERT INTO history (seq, body) VALUES (@seq, @body);

-- name: HistoryAscending :many
-- A page of events with after < seq < before. An empty filter selects all.
-- This must be planned with its arguments, so that the planner can replace expressions
-- without columns by constants. The result is ordered by the filtered columns and then by
-- seq, so that only the index on exactly these columns fits. BETWEEN hides from the planner
-- that a filtered column has only one value. If the result were ordered by seq alone, the
-- planner might scan all rows until it finds enough, which is slow if all matches are old.
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
-- Like HistoryAscending, newest first.
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
-- Like HistoryAscending, for one hash. Uses its index.
SELECT body FROM history
WHERE substring(body FROM '"hash":"([^"]*)"') = @hash::text
    AND (@environment::text = '' OR environment = @environment)
    AND (@model::text = '' OR model = @model)
    AND (@kind::text = '' OR kind = @kind)
    AND (@subject::text = '' OR subject = @subject)
    AND seq > @after AND seq < @before
LIMIT 1;
