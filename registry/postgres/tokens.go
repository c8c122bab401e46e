package postgres

import (
	"context"
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// CreateToken stores a token.
func (db *DB) CreateToken(ctx context.Context, t registry.Token) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := tokenRow(t)
	if err != nil {
		return err
	}
	err = db.interpretError("token "+t.Name, db.queries().TokenCreate(ctx, row))
	if registry.HasCode(err, registry.CodeConflict) {
		return registry.Lastingf(registry.CodeConflict,
			"token %s: a token with this name exists: revoke it, or choose another name", t.Name)
	}
	return err
}

// tokenRow returns the row of an unused token.
func tokenRow(t registry.Token) (dbsqlc.TokenCreateParams, error) {
	grants, err := json.Marshal(t.Grants)
	return dbsqlc.TokenCreateParams{
		ID: t.ID, Name: t.Name, Hash: t.Hash[:], Grants: string(grants),
		Created: t.Created, Expires: orNull(t.Expires), Revoked: orNull(t.Revoked),
	}, err
}

// FindToken returns the token of an ID.
func (db *DB) FindToken(ctx context.Context, id string) (registry.Token, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().TokenGet(ctx, id)
	if err != nil {
		return registry.Token{}, db.interpretError("token "+id, err)
	}
	return token(row)
}

// ListTokens lists tokens by ID.
func (db *DB) ListTokens(ctx context.Context) ([]registry.Token, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().TokenList(ctx)
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
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().TokenRevoke(ctx, dbsqlc.TokenRevokeParams{ID: id, At: at})
	return db.interpretError("token "+id, found(n, err))
}

// UseToken records the use of a token.
func (db *DB) UseToken(ctx context.Context, id string, at time.Time) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().TokenUse(ctx, dbsqlc.TokenUseParams{ID: id, At: at})
	return db.interpretError("token "+id, found(n, err))
}

// Secret returns the secret with the name. If there is none, fresh becomes the secret.
func (db *DB) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if len(fresh) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "secret %s: the new secret is empty: want a value", name)
	}
	var secret []byte
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
		if err := q.SecretOffer(ctx, dbsqlc.SecretOfferParams{Name: name, Value: fresh}); err != nil {
			return err
		}
		secret, err = q.SecretGet(ctx, name)
		return err
	})
	return secret, db.interpretError("secret "+name, err)
}

func token(row dbsqlc.Token) (registry.Token, error) {
	t := registry.Token{
		ID: row.ID, Name: row.Name, Created: row.Created.UTC(),
		Expires: timeOf(row.Expires), Revoked: timeOf(row.Revoked), LastUsed: timeOf(row.Used),
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

// orNull converts a time to the value of a column; the zero time is NULL.
func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// timeOf converts the value of a column to a time; NULL is the zero time.
func timeOf(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
