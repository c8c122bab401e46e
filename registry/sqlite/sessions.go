package sqlite

import (
	"context"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Sessions = (*DB)(nil)

// CreateSession stores a session, and deletes those that it replaces.
func (db *DB) CreateSession(ctx context.Context, s storage.Session) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		if err := q.SessionForget(ctx, toMicros(s.Created)); err != nil {
			return err
		}
		err := q.SessionCreate(ctx, dbsqlc.SessionCreateParams{
			ID: s.ID, Hash: s.Hash[:], Owner: s.Owner, Token: s.Token, Issuer: s.Issuer,
			Claims: catalog.NotNull(s.Claims), Created: toMicros(s.Created), Expires: toMicros(s.Expires),
		})
		if err != nil {
			return err
		}
		return q.SessionTrim(ctx, dbsqlc.SessionTrimParams{Owner: s.Owner, Keep: storage.MaxSessions})
	})
	return db.interpretError("session "+s.ID, err)
}

// sessionKey is the cache key of a session.
type sessionKey string

// FindSession returns the session with an ID.
func (db *DB) FindSession(ctx context.Context, id string) (storage.Session, error) {
	row, err := recall(ctx, db.steady, sessionKey(id), func() (dbsqlc.Session, error) { return db.read().SessionGet(ctx, id) })
	if err != nil {
		return storage.Session{}, db.interpretError("session "+id, err)
	}
	return catalog.SessionRow{
		ID: row.ID, Hash: row.Hash, Owner: row.Owner, Token: row.Token, Issuer: row.Issuer, Claims: row.Claims,
		Created: fromMicros(row.Created), Expires: fromMicros(row.Expires),
	}.Session()
}

// EndSession deletes a session.
func (db *DB) EndSession(ctx context.Context, id string) error {
	return db.interpretError("session "+id, db.write().SessionEnd(ctx, id))
}

// EndSessions deletes the sessions of an owner.
func (db *DB) EndSessions(ctx context.Context, owner string) (int, error) {
	n, err := db.write().SessionEndOf(ctx, owner)
	return int(n), db.interpretError("sessions", err)
}
