-- One clock for all replicas, and removals of bytes outside of transactions.

-- +goose Up

-- The clock of the catalog. All that replicas compare is by it: ages, leases, deadlines.
CREATE FUNCTION catalog_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT now()';
CREATE FUNCTION catalog_in(microseconds bigint) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT catalog_now() + microseconds * interval ''1 microsecond''';

-- removal is the identifier of the removal of these bytes that is under way, and until when
-- it lasts; null: none is.
ALTER TABLE condemned ADD COLUMN removal text COLLATE "C", ADD COLUMN until timestamptz;
CREATE INDEX condemned_removal ON condemned (removal) WHERE removal IS NOT NULL;

UPDATE catalog SET version = 6;

-- +goose Down

DROP INDEX condemned_removal;
ALTER TABLE condemned DROP COLUMN until, DROP COLUMN removal;
DROP FUNCTION catalog_in(bigint);
DROP FUNCTION catalog_now();

UPDATE catalog SET version = 5;
