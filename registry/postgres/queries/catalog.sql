-- name: CatalogGet :one
SELECT id, version FROM catalog;

-- name: CatalogIdentityGet :one
SELECT id, origins, storage, epoch FROM catalog;

-- name: CatalogRecordContent :execrows
-- Rows: 0 where the catalog has recorded other content meanwhile.
UPDATE catalog SET storage = @storage, epoch = @epoch
WHERE id = @id AND storage = @storage_before AND epoch = @epoch_before;

-- name: CatalogSetOrigins :exec
UPDATE catalog SET origins = @origins;

-- name: CollectionSessionLock :one
-- Held by whoever collects, as long as the session lasts. False: another session has it.
SELECT pg_try_advisory_lock(7236834190823321603) AS locked;

-- name: CollectionSessionSettings :exec
-- The server notices within two minutes that the machine of this session is gone.
SELECT set_config('tcp_keepalives_idle', '60', false), set_config('tcp_keepalives_interval', '10', false),
    set_config('tcp_keepalives_count', '6', false);
-- name: TimeGet :one
SELECT catalog_now()::timestamptz AS now;

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
