-- name: HistoryLast :one
SELECT body FROM history ORDER BY seq DESC LIMIT 1;

-- name: HistoryLastSeq :one
-- Returns 0 before the first event.
SELECT CAST(coalesce(max(seq), 0) AS INTEGER) AS seq FROM history;

-- name: HistorySince :many
-- Returns the events of a model in all environments.
SELECT body FROM history WHERE model = @model AND seq > @after ORDER BY seq;

-- name: HistoryNewestHash :one
SELECT hash FROM history WHERE environment = @environment AND model = @model ORDER BY seq DESC LIMIT 1;

-- name: HistoryAppend :exec
INSERT INTO history (seq, body) VALUES (@seq, @body);

-- name: HistoryAscending :many
-- A page of events with after < seq < before. An empty filter selects all.
SELECT body FROM history
WHERE (CAST(@environment AS TEXT) = '' OR environment = @environment)
    AND (CAST(@model AS TEXT) = '' OR model = @model)
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND seq > @after AND seq < @before
ORDER BY seq LIMIT @page_size;

-- name: HistoryDescending :many
-- Like HistoryAscending, newest first.
SELECT body FROM history
WHERE (CAST(@environment AS TEXT) = '' OR environment = @environment)
    AND (CAST(@model AS TEXT) = '' OR model = @model)
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND seq > @after AND seq < @before
ORDER BY seq DESC LIMIT @page_size;

-- name: HistoryOfModelAscending :many
-- Like HistoryAscending, for one model in one environment. Uses its index.
SELECT body FROM history
WHERE environment = @environment AND model = @model
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND seq > @after AND seq < @before
ORDER BY seq LIMIT @page_size;

-- name: HistoryOfModelDescending :many
-- Like HistoryOfModelAscending, newest first.
SELECT body FROM history
WHERE environment = @environment AND model = @model
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND seq > @after AND seq < @before
ORDER BY seq DESC LIMIT @page_size;

-- name: HistoryOfSubjectAscending :many
-- Like HistoryAscending, for one subject. Uses its index.
SELECT body FROM history
WHERE subject = @subject AND subject <> ''
    AND (CAST(@environment AS TEXT) = '' OR environment = @environment)
    AND (CAST(@model AS TEXT) = '' OR model = @model)
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND seq > @after AND seq < @before
ORDER BY seq LIMIT @page_size;

-- name: HistoryOfSubjectDescending :many
-- Like HistoryOfSubjectAscending, newest first.
SELECT body FROM history
WHERE subject = @subject AND subject <> ''
    AND (CAST(@environment AS TEXT) = '' OR environment = @environment)
    AND (CAST(@model AS TEXT) = '' OR model = @model)
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND seq > @after AND seq < @before
ORDER BY seq DESC LIMIT @page_size;

-- name: HistoryOfHash :many
-- Like HistoryAscending, for one hash. Uses its index.
SELECT body FROM history
WHERE hash = @hash
    AND (CAST(@environment AS TEXT) = '' OR environment = @environment)
    AND (CAST(@model AS TEXT) = '' OR model = @model)
    AND (CAST(@kind AS TEXT) = '' OR kind = @kind)
    AND (CAST(@subject AS TEXT) = '' OR subject = @subject)
    AND seq > @after AND seq < @before
LIMIT 1;
