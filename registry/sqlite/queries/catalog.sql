-- name: CatalogGet :one
SELECT id, origins, storage, epoch FROM catalog;

-- name: CatalogRecordContent :execrows
-- Changes 0 rows if the catalog has recorded other content in the meantime.
UPDATE catalog SET storage = @storage, epoch = @epoch
WHERE id = @id AND storage = @storage_before AND epoch = @epoch_before;

-- name: CatalogRenew :exec
UPDATE catalog SET id = @id, origins = @origins, storage = '', epoch = 0;
