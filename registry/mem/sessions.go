package mem

import (
	"bytes"
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Sessions = (*DB)(nil)

// CreateSession keeps a session, and deletes those that it replaces.
func (db *DB) CreateSession(ctx context.Context, s storage.Session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, ok := db.sessions[s.ID]; ok {
		return registry.Errorf(registry.CodeConflict, "session %s: exists", s.ID)
	}
	s.Claims = bytes.Clone(s.Claims)
	s.Created, s.Expires = s.Created.UTC().Truncate(time.Microsecond), s.Expires.UTC().Truncate(time.Microsecond)
	db.sessions[s.ID] = s
	var own []storage.Session
	for id, have := range db.sessions {
		switch {
		case !have.Expires.After(s.Created):
			delete(db.sessions, id)
		case have.Owner == s.Owner:
			own = append(own, have)
		}
	}
	slices.SortFunc(own, func(a, b storage.Session) int { return b.Created.Compare(a.Created) })
	for _, old := range own[min(len(own), storage.MaxSessions):] {
		delete(db.sessions, old.ID)
	}
	return nil
}

// FindSession returns the session with an ID.
func (db *DB) FindSession(ctx context.Context, id string) (storage.Session, error) {
	if err := ctx.Err(); err != nil {
		return storage.Session{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	s, ok := db.sessions[id]
	if !ok {
		return storage.Session{}, registry.Errorf(registry.CodeNotFound, "session %s: not found", id)
	}
	s.Claims = bytes.Clone(s.Claims)
	return s, nil
}

// EndSession deletes a session.
func (db *DB) EndSession(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.sessions, id)
	return nil
}

// EndSessions deletes the sessions of an owner.
func (db *DB) EndSessions(ctx context.Context, owner string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	n := 0
	for id, s := range db.sessions {
		if s.Owner == owner {
			delete(db.sessions, id)
			n++
		}
	}
	return n, nil
}
