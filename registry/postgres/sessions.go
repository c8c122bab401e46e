package postgres

import (
	"context"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// CreateSession stores a session, and deletes those that it replaces.
func (db *DB) CreateSession(ctx context.Context, s storage.Session) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.SessionForget(ctx, s.Created); err != nil {
			return err
		}
		err := q.SessionCreate(ctx, dbsqlc.SessionCreateParams{
			ID: s.ID, Hash: s.Hash[:], Owner: s.Owner, Token: s.Token, Issuer: s.Issuer,
			Claims: catalog.NotNull(s.Claims), Created: s.Created, Expires: s.Expires,
		})
		if err != nil {
			return err
		}
		return q.SessionTrim(ctx, dbsqlc.SessionTrimParams{Owner: s.Owner, Keep: storage.MaxSessions})
	})
	return db.interpretError("session "+s.ID, err)
}

// FindSession returns the session with an ID.
func (db *DB) FindSession(ctx context.Context, id string) (storage.Session, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().SessionGet(ctx, id)
	if err != nil {
		return storage.Session{}, db.interpretError("session "+id, err)
	}
	return catalog.SessionRow{
		ID: row.ID, Hash: row.Hash, Owner: row.Owner, Token: row.Token, Issuer: row.Issuer, Claims: row.Claims,
		Created: row.Created.UTC(), Expires: row.Expires.UTC(),
	}.Session()
}

// EndSession deletes a session.
func (db *DB) EndSession(ctx context.Context, id string) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.interpretError("session "+id, db.queries().SessionEnd(ctx, id))
}

// EndSessions deletes the sessions of an owner.
func (db *DB) EndSessions(ctx context.Context, owner string) (int, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().SessionEndOf(ctx, owner)
	return int(n), db.interpretError("sessions", err)
}
