package catalog

import (
	"bytes"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// SessionRow is the row of a session.
type SessionRow struct {
	ID               string
	Hash             []byte
	Owner            string
	Token, Issuer    string
	Claims           []byte
	Created, Expires time.Time
}

// Session returns the session of a row. Errors: CodeInternal, because the catalog writes only valid
// rows.
func (row SessionRow) Session() (storage.Session, error) {
	s := storage.Session{
		ID: row.ID, Owner: row.Owner, Token: row.Token, Issuer: row.Issuer, Created: row.Created, Expires: row.Expires,
	}
	if len(row.Claims) > 0 {
		s.Claims = bytes.Clone(row.Claims) // the row may be remembered
	}
	if len(row.Hash) != len(s.Hash) {
		return storage.Session{}, registry.Errorf(registry.CodeInternal,
			"session %s: its hash has %d bytes: want %d", row.ID, len(row.Hash), len(s.Hash))
	}
	copy(s.Hash[:], row.Hash)
	return s, nil
}
