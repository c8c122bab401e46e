package postgres

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.CatalogIdentities = (*DB)(nil)
	_ storage.CollectionLock    = (*DB)(nil)
)

var (
	//go:embed instance.sql
	instanceOfServer string
	//go:embed instance_database.sql
	instanceOfDatabase string
)

// CatalogIdentity reads the identity of the catalog. Its instance is the ID of the server and
// the database. A restored dump has another instance; a standby that became the primary has the
// same.
func (db *DB) CatalogIdentity(ctx context.Context) (storage.CatalogIdentity, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().CatalogIdentityGet(ctx)
	if err != nil {
		return storage.CatalogIdentity{}, db.interpretError("identity of the catalog", err)
	}
	var instance string
	err = db.pool.QueryRow(ctx, instanceOfServer).Scan(&instance)
	var failure *pgconn.PgError
	if errors.As(err, &failure) && failure.Code == insufficientPrivilege {
		err = db.pool.QueryRow(ctx, instanceOfDatabase).Scan(&instance)
	}
	return catalog.IdentityRow(row).Identity(instance), db.interpretError("identity of the catalog", err)
}

// RecordContent records the content that the catalog owns.
func (db *DB) RecordContent(ctx context.Context, before, after storage.CatalogIdentity) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().CatalogRecordContent(ctx, dbsqlc.CatalogRecordContentParams{
		ID: before.ID, StorageBefore: before.Storage, EpochBefore: before.Epoch, Storage: after.Storage, Epoch: after.Epoch,
	})
	return db.interpretError("content of the catalog", catalog.ContentRecorded(db.name, rows, err))
}

// lockPause is the time between two attempts of a collector to get the lock.
const lockPause = 200 * time.Millisecond

// LockCollection takes an advisory lock in a separate session, since the pool may have only one
// connection. The lock ends with the session, even if this process is killed.
func (db *DB) LockCollection(ctx context.Context) (storage.CollectionSession, error) {
	conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return nil, db.interpretError("lock of the collection", err)
	}
	s := &collectionSession{db: db, conn: conn}
	if err := s.wait(ctx); err != nil {
		s.Release()
		return nil, db.interpretError("lock of the collection", err)
	}
	return s, nil
}

// collectionSession is a connection whose session has the lock.
type collectionSession struct {
	db   *DB
	mu   sync.Mutex // a connection takes one query at a time
	conn *pgx.Conn
}

func (s *collectionSession) wait(ctx context.Context) error {
	q := dbsqlc.New(s.conn)
	if err := q.CollectionSessionSettings(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(lockPause)
	defer ticker.Stop()
	for {
		locked, err := q.CollectionSessionLock(ctx)
		if err != nil || locked {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Held queries the server: as long as the session answers, it has the lock.
func (s *collectionSession) Held(ctx context.Context) error {
	ctx, cancel := s.db.limit(ctx)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conn.Ping(ctx); err != nil {
		return registry.Errorf(registry.CodeUnavailable,
			"the lock of the collection on database %s was lost; nothing more was deleted; the next collection continues: %w",
			s.db.name, err)
	}
	return nil
}

// Release ends the session.
func (s *collectionSession) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // and with it the lock
}
