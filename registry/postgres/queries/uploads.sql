-- name: UploadUnsynced :exec
-- The transaction does not wait for the disk. Every pushed blob needs several of these
-- transactions, and a power failure may undo them.
SELECT set_config('synchronous_commit', 'off', true);

-- name: UploadCreate :exec
INSERT INTO uploads (id, repository, principal, arrived, hash, place, version, touched)
VALUES (@id, @repository, @principal, @arrived, @hash, @place, 1, catalog_now());

-- name: UploadGet :one
SELECT * FROM uploads WHERE id = @id AND repository = @repository AND principal = @principal;

-- name: UploadVersion :one
SELECT version FROM uploads WHERE id = @id;

-- name: UploadSwap :execrows
UPDATE uploads
SET arrived = @arrived, hash = @hash, place = @place, touched = catalog_now(), version = version + 1
WHERE id = @id AND version = @version;

-- name: UploadEnd :execrows
DELETE FROM uploads WHERE id = @id AND version = @version;

-- name: UploadEndOwned :execrows
DELETE FROM uploads
WHERE id = @id AND repository = @repository AND principal = @principal AND version = @version;

-- name: UploadCount :one
SELECT count(*) FROM uploads WHERE touched >= catalog_in(0 - @within::bigint) AND principal = @principal;

-- name: UploadStale :many
-- A page of uploads last touched before a time: those after (touched, id), in that order.
SELECT * FROM uploads
WHERE touched < @before AND (touched, id) > (@touched::timestamptz, @id::text)
ORDER BY touched, id
LIMIT @page_size;
