package sqlite

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.Tokens  = (*DB)(nil)
	_ storage.Secrets = (*DB)(nil)
)

// CreateToken stores a token.
func (db *DB) CreateToken(ctx context.Context, t storage.Token) error {
	row, err := catalog.EncodeToken(t)
	if err != nil {
		return err
	}
	err = db.write().TokenCreate(ctx, dbsqlc.TokenCreateParams{
		ID: row.ID, Name: row.Name, Hash: row.Hash, Grants: row.Grants,
		Created: toMicros(row.Created), Expires: toMicros(row.Expires), Revoked: toMicros(row.Revoked),
	})
	return catalog.TokenCreated(t.Name, db.interpretError("token "+t.Name, err))
}

// tokenKey is the cache key of a token.
type tokenKey string

// FindToken returns the token of an ID.
func (db *DB) FindToken(ctx context.Context, id string) (storage.Token, error) {
	row, err := recall(ctx, db.steady, tokenKey(id), func() (dbsqlc.Token, error) { return db.read().TokenGet(ctx, id) })
	if err != nil {
		return storage.Token{}, db.interpretError("token "+id, err)
	}
	return token(row)
}

// allTokens is the cache key of the list of tokens.
type allTokens struct{}

// ListTokens lists tokens by ID. A service without tokens calls it for every request.
func (db *DB) ListTokens(ctx context.Context) ([]storage.Token, error) {
	rows, err := recall(ctx, db.steady, allTokens{}, func() ([]dbsqlc.Token, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return db.read().TokenList(context.WithoutCancel(ctx)) // to watch ctx takes longer than to read a short list
	})
	if err != nil {
		return nil, db.interpretError("tokens", err)
	}
	return catalog.Decode(rows, token)
}

// RevokeToken revokes a token.
func (db *DB) RevokeToken(ctx context.Context, id string, at time.Time) error {
	n, err := db.write().TokenRevoke(ctx, dbsqlc.TokenRevokeParams{ID: id, At: toMicros(at)})
	return db.interpretError("token "+id, catalog.Found(n, err))
}

// UseToken records the use of a token.
func (db *DB) UseToken(ctx context.Context, id string, at time.Time) error {
	n, err := db.write().TokenUse(ctx, dbsqlc.TokenUseParams{ID: id, At: toMicros(at)})
	return db.interpretError("token "+id, catalog.Found(n, err))
}

// Secret returns the secret with the name. If there is none, fresh becomes the secret.
func (db *DB) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if err := catalog.CheckSecret(name, fresh); err != nil {
		return nil, err
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

func token(row dbsqlc.Token) (storage.Token, error) {
	return catalog.TokenRow{
		ID: row.ID, Name: row.Name, Hash: row.Hash, Grants: row.Grants, Created: fromMicros(row.Created),
		Expires: orZero(row.Expires), Revoked: orZero(row.Revoked), LastUsed: orZero(row.Used),
	}.Token()
}

// toMicros converts a time to the value of a column; the zero time is 0.
func toMicros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}
