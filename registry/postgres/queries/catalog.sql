-- name: CatalogGet :one
SELECT id, schema_version, schema_mark FROM catalog;

-- name: CatalogIdentityGet :one
SELECT id, origins, storage, epoch FROM catalog;

-- name: CatalogRecordContent :execrows
-- Changes 0 rows if the catalog has recorded other content in the meantime.
UPDATE catalog SET storage = @storage, epoch = @epoch
WHERE id = @id AND storage = @storage_before AND epoch = @epoch_before;

-- name: CatalogSetOrigins :exec
UPDATE catalog SET origins = @origins;

-- name: CollectionSessionLock :one
-- The session that collects garbage holds this lock until it ends. Returns false if another
-- session holds it.
SELECT pg_try_advisory_lock(7236834190823321603) AS locked;

-- name: CollectionSessionSettings :exec
-- With these settings, the server notices within two minutes that the machine of this
-- session is gone.
SELECT set_config('tcp_keepalives_idle', '60', false), set_config('tcp_keepalives_interval', '10', false),
    set_config('tcp_keepalives_count', '6', false);
-- name: TimeGet :one
SELECT catalog_now()::timestamptz AS now;

-- name: ServerGet :one
-- Reads and sets what a connection needs. If the server does not wait for commits to reach
-- the disk, this connection does; stricter settings stay. If the machine of a replica
-- disappears, the server ends its transactions after a while and frees their locks.
SELECT
    current_setting('server_encoding')::text AS encoding,
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)::text AS synchronous_commit,
    set_config('idle_in_transaction_session_timeout', CASE current_setting('idle_in_transaction_session_timeout')
        WHEN '0' THEN '20s' ELSE current_setting('idle_in_transaction_session_timeout') END, false)::text AS idle_in_transaction;

-- name: MigrationLock :exec
-- A transaction that migrates the schema holds this lock until it ends.
SELECT pg_advisory_xact_lock(7236834190823321601);

-- name: ChainLock :exec
-- A transaction that appends to the history holds this lock until it ends. Readers do not
-- take it.
SELECT pg_advisory_xact_lock(7236834190823321602);
