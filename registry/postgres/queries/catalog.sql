-- name: CatalogGet :one
SELECT id, version FROM catalog;

-- name: ServerGet :one
-- What a connection must know of its server. Commits that the server has been told not
-- to wait for are waited for in this session; what waits for more stays as it is.
SELECT
    current_setting('server_encoding')::text AS encoding,
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)::text AS synchronous_commit;

-- name: MigrationLock :exec
-- Held by whoever brings the schema up to date, until the end of his transaction.
SELECT pg_advisory_xact_lock(7236834190823321601);

-- name: ChainLock :exec
-- Held by whoever appends to the history, until the end of his transaction. Readers do
-- not ask for it.
SELECT pg_advisory_xact_lock(7236834190823321602);
