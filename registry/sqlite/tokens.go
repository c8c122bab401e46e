package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

var (
	_ registry.Tokens  = (*DB)(nil)
	_ registry.Secrets = (*DB)(nil)
)

// CreateToken stores a token.
func (db *DB) CreateToken(ctx context.Context, t registry.Token) error {
	grants, err := json.Marshal(t.Grants)
	if err != nil {
		return err
	}
	err = db.interpretError("token "+t.Name, db.write().TokenCreate(ctx, dbsqlc.TokenCreateParams{
		ID: t.ID, Name: t.Name, Hash: t.Hash[:], Grants: string(grants),
		Created: toMicros(t.Created), Expires: toMicros(t.Expires), Revoked: toMicros(t.Revoked),
	}))
	if registry.HasCode(err, registry.CodeConflict) {
		return registry.Lastingf(registry.CodeConflict,
			"token %s: a token with this name exists: revoke it, or choose another name", t.Name)
	}
	return err
}

// FindToken returns the token of an ID.
func (db *DB) FindToken(ctx context.Context, id string) (registry.Token, error) {
	row, err := db.read().TokenGet(ctx, id)
	if err != nil {
		return registry.Token{}, db.interpretError("token "+id, err)
	}
	return token(row)
}

// allTokens is the cache key of the list of tokens.
type allTokens struct{}

// ListTokens lists tokens by ID. A service without tokens calls it for every request.
func (db *DB) ListTokens(ctx context.Context) ([]registry.Token, error) {
	rows, err := recall(ctx, db.steady, allTokens{}, func() ([]dbsqlc.Token, error) { return db.read().TokenList(ctx) })
	if err != nil {
		return nil, db.interpretError("tokens", err)
	}
	var all []registry.Token
	for _, row := range rows {
		t, err := token(row)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// RevokeToken revokes a token.
func (db *DB) RevokeToken(ctx context.Context, id string, at time.Time) error {
	n, err := db.write().TokenRevoke(ctx, dbsqlc.TokenRevokeParams{ID: id, At: toMicros(at)})
	return db.interpretError("token "+id, found(n, err))
}

// UseToken records the use of a token.
func (db *DB) UseToken(ctx context.Context, id string, at time.Time) error {
	n, err := db.write().TokenUse(ctx, dbsqlc.TokenUseParams{ID: id, At: toMicros(at)})
	return db.interpretError("token "+id, found(n, err))
}

// Secret returns the secret with the name. If there is none, fresh becomes the secret.
func (db *DB) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if len(fresh) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "secret %s: the new secret is empty: want a value", name)
	}
	var secret []byte
	err := db.transaction(ctx, func(q *dbsqlc.Queries) (err error) {
		if err := q.SecretOffer(ctx, dbsqlc.SecretOfferParams{Name: name, Value: fresh}); err != nil {
			return err
		}
		secret, err = q.SecretGet(ctx, name)
		return err
	})
	return secret, db.interpretError("secret "+name, err)
}

func token(row dbsqlc.Token) (registry.Token, error) {
	t := registry.Token{ID: row.ID, Name: row.Name, Created: fromMicros(row.Created)}
	if row.Expires != 0 {
		t.Expires = fromMicros(row.Expires)
	}
	if row.Revoked != 0 {
		t.Revoked = fromMicros(row.Revoked)
	}
	if row.Used != 0 {
		t.LastUsed = fromMicros(row.Used)
	}
	if copy(t.Hash[:], row.Hash) != len(t.Hash) || len(row.Hash) != len(t.Hash) {
		return registry.Token{}, registry.Errorf(registry.CodeInternal,
			"token %s: its hash has %d bytes: want %d", row.ID, len(row.Hash), len(t.Hash))
	}
	if err := json.Unmarshal([]byte(row.Grants), &t.Grants); err != nil {
		return registry.Token{}, registry.Errorf(registry.CodeInternal, "token %s: grants: %w", row.ID, err)
	}
	return t, nil
}

// toMicros converts a time to the value of a column; the zero time is 0.
func toMicros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}
