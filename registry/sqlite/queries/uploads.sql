-- name: UploadCreate :exec
INSERT INTO uploads (id, repository, principal, arrived, hash, place, version, touched)
VALUES (@id, @repository, @principal, @arrived, @hash, @place, 1, @touched);

-- name: UploadGet :one
SELECT * FROM uploads WHERE id = @id AND repository = @repository AND principal = @principal;

-- name: UploadVersion :one
SELECT version FROM uploads WHERE id = @id;

-- name: UploadSwap :execrows
UPDATE uploads
SET arrived = @arrived, hash = @hash, place = @place, touched = @touched, version = version + 1
WHERE id = @id AND version = @version;

-- name: UploadEnd :execrows
DELETE FROM uploads WHERE id = @id AND version = @version;

-- name: UploadEndOwned :execrows
DELETE FROM uploads
WHERE id = @id AND repository = @repository AND principal = @principal AND version = @version;

-- name: UploadCount :one
SELECT count(*) FROM uploads WHERE touched >= @since AND principal = @principal;

-- name: UploadStale :many
-- The page after (touched, id), in that order.
SELECT * FROM uploads
WHERE touched < @before
    AND touched >= CAST(@touched AS INTEGER) AND (touched > CAST(@touched AS INTEGER) OR id > @id)
ORDER BY touched, id
LIMIT @page_size;
