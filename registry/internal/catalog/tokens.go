package catalog

import (
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TokenRow is the row of a token. A zero time is an empty column.
type TokenRow struct {
	ID, Name                            string
	Hash                                []byte
	Grants                              string // JSON
	Created, Expires, Revoked, LastUsed time.Time
}

// EncodeToken returns the row of a token. Times stay as they are.
func EncodeToken(t storage.Token) (TokenRow, error) {
	grants, err := json.Marshal(t.Grants)
	return TokenRow{
		ID: t.ID, Name: t.Name, Hash: t.Hash[:], Grants: string(grants),
		Created: t.Created, Expires: t.Expires, Revoked: t.Revoked, LastUsed: t.LastUsed,
	}, err
}

// Token returns the token of a row. Errors: CodeInternal, because the catalog writes only valid
// rows.
func (row TokenRow) Token() (storage.Token, error) {
	t := storage.Token{
		ID: row.ID, Name: row.Name,
		Created: row.Created, Expires: row.Expires, Revoked: row.Revoked, LastUsed: row.LastUsed,
	}
	if len(row.Hash) != len(t.Hash) {
		return storage.Token{}, registry.Errorf(registry.CodeInternal,
			"token %s: its hash has %d bytes: want %d", row.ID, len(row.Hash), len(t.Hash))
	}
	copy(t.Hash[:], row.Hash)
	if err := json.Unmarshal([]byte(row.Grants), &t.Grants); err != nil {
		return storage.Token{}, registry.Errorf(registry.CodeInternal, "token %s: grants: %w", row.ID, err)
	}
	return t, nil
}

// TokenCreated returns err, the interpreted result of storing a new token, and says what to do
// if its name is in use.
func TokenCreated(name string, err error) error {
	if registry.HasCode(err, registry.CodeConflict) {
		return registry.Lastingf(registry.CodeConflict,
			"token %s: a token with this name exists: revoke it, or choose another name", name)
	}
	return err
}

// CheckSecret refuses an empty value for a new secret.
func CheckSecret(name string, fresh []byte) error {
	if len(fresh) == 0 {
		return registry.Errorf(registry.CodeInvalid, "secret %s: the new secret is empty: want a value", name)
	}
	return nil
}
