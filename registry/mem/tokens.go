package mem

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.Tokens  = (*DB)(nil)
	_ storage.Secrets = (*DB)(nil)
)

// CreateToken keeps a token.
func (db *DB) CreateToken(ctx context.Context, t storage.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, have := range db.tokens {
		if have.ID == t.ID || have.Name == t.Name && have.Revoked.IsZero() {
			return catalog.TokenCreated(t.Name, registry.Errorf(registry.CodeConflict, "token %s: exists", t.Name))
		}
	}
	t.Grants = cloneGrants(t.Grants)
	for _, at := range []*time.Time{&t.Created, &t.Expires, &t.Revoked} {
		if !at.IsZero() {
			*at = at.UTC().Truncate(time.Microsecond)
		}
	}
	db.tokens[t.ID] = t
	return nil
}

// FindToken returns the token of an ID.
func (db *DB) FindToken(ctx context.Context, id string) (storage.Token, error) {
	if err := ctx.Err(); err != nil {
		return storage.Token{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	t, ok := db.tokens[id]
	if !ok {
		return storage.Token{}, registry.Errorf(registry.CodeNotFound, "token %s: not found", id)
	}
	t.Grants = cloneGrants(t.Grants)
	return t, nil
}

// ListTokens lists tokens by ID.
func (db *DB) ListTokens(ctx context.Context) ([]storage.Token, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	all := slices.SortedFunc(maps.Values(db.tokens), func(a, b storage.Token) int { return cmp.Compare(a.ID, b.ID) })
	for i := range all {
		all[i].Grants = cloneGrants(all[i].Grants)
	}
	return all, nil
}

// RevokeToken ends a token.
func (db *DB) RevokeToken(ctx context.Context, id string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, ok := db.tokens[id]
	if !ok {
		return registry.Errorf(registry.CodeNotFound, "token %s: not found", id)
	}
	if t.Revoked.IsZero() {
		t.Revoked = at.UTC().Truncate(time.Microsecond)
		db.tokens[id] = t
	}
	return nil
}

// UseToken notes that a token was used.
func (db *DB) UseToken(ctx context.Context, id string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, ok := db.tokens[id]
	if !ok {
		return registry.Errorf(registry.CodeNotFound, "token %s: not found", id)
	}
	if at = at.UTC().Truncate(time.Microsecond); at.After(t.LastUsed) {
		t.LastUsed = at
		db.tokens[id] = t
	}
	return nil
}

// Secret returns the secret of a name, which fresh becomes if there is none.
func (db *DB) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := catalog.CheckSecret(name, fresh); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, ok := db.secrets[name]; !ok {
		db.secrets[name] = bytes.Clone(fresh)
	}
	return bytes.Clone(db.secrets[name]), nil
}

// cloneGrants shares no memory with grants.
func cloneGrants(grants []storage.Grant) []storage.Grant {
	copied := slices.Clone(grants)
	for i := range copied {
		copied[i].Permissions = slices.Clone(copied[i].Permissions)
	}
	return copied
}
