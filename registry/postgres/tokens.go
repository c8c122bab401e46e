package postgres

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// CreateToken stores a token.
func (db *DB) CreateToken(ctx context.Context, t storage.Token) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := tokenRow(t)
	if err != nil {
		return err
	}
	err = db.queries().TokenCreate(ctx, row)
	return catalog.TokenCreated(t.Name, db.interpretError("token "+t.Name, err))
}

// tokenRow returns the row of an unused token.
func tokenRow(t storage.Token) (dbsqlc.TokenCreateParams, error) {
	row, err := catalog.EncodeToken(t)
	return dbsqlc.TokenCreateParams{
		ID: row.ID, Name: row.Name, Hash: row.Hash, Grants: row.Grants,
		Created: row.Created, Expires: orNull(row.Expires), Revoked: orNull(row.Revoked),
	}, err
}

// FindToken returns the token of an ID.
func (db *DB) FindToken(ctx context.Context, id string) (storage.Token, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().TokenGet(ctx, id)
	if err != nil {
		return storage.Token{}, db.interpretError("token "+id, err)
	}
	return token(row)
}

// ListTokens lists tokens by ID.
func (db *DB) ListTokens(ctx context.Context) ([]storage.Token, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().TokenList(ctx)
	if err != nil {
		return nil, db.interpretError("tokens", err)
	}
	return catalog.Decode(rows, token)
}

// RevokeToken revokes a token.
func (db *DB) RevokeToken(ctx context.Context, id string, at time.Time) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().TokenRevoke(ctx, dbsqlc.TokenRevokeParams{ID: id, At: at})
	return db.interpretError("token "+id, catalog.Found(n, err))
}

// UseToken records the use of a token.
func (db *DB) UseToken(ctx context.Context, id string, at time.Time) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().TokenUse(ctx, dbsqlc.TokenUseParams{ID: id, At: at})
	return db.interpretError("token "+id, catalog.Found(n, err))
}

// Secret returns the secret with the name. If there is none, fresh becomes the secret.
func (db *DB) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if err := catalog.CheckSecret(name, fresh); err != nil {
		return nil, err
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

func token(row dbsqlc.Token) (storage.Token, error) {
	return catalog.TokenRow{
		ID: row.ID, Name: row.Name, Hash: row.Hash, Grants: row.Grants, Created: row.Created.UTC(),
		Expires: timeOf(row.Expires), Revoked: timeOf(row.Revoked), LastUsed: timeOf(row.Used),
	}.Token()
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
