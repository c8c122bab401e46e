-- name: CatalogGet :one
SELECT id, version FROM catalog;

-- name: ServerGet :one
-- What a connection must know of its server, and what it asks of it. Commits that the
-- server has been told not to wait for are waited for; what waits for more stays as it is.
-- A replica whose machine is gone without a word lets go of its locks after a while.
SELECT
    current_setting('server_encoding')::text AS encoding,
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)::text AS synchronous_commit,
    set_config('idle_in_transaction_session_timeout', CASE current_setting('idle_in_transaction_session_timeout')
        WHEN '0' THEN '20s' ELSE current_setting('idle_in_transaction_session_timeout') END, false)::text AS idle_in_transaction;

-- name: MigrationLock :exec
-- Held by whoever brings the schema up to date, until the end of his transaction.
SELECT pg_advisory_xact_lock(7236834190823321601);

-- name: ChainLock :exec
-- Held by whoever appends to the history, until the end of his transaction. Readers do
-- not ask for it.
SELECT pg_advisory_xact_lock(7236834190823321602);
