package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TokenRequest is the body of POST tokens. The client keeps the secret and sends its hash.
type TokenRequest struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Hash    registry.Digest `json:"hash"` // sha256 of the secret's text
	Grants  []storage.Grant `json:"grants"`
	Expires time.Time       `json:"expires,omitzero"` // absent: never
}

// NewTokenRequest returns the request that creates a token.
func NewTokenRequest(t storage.Token) TokenRequest {
	return TokenRequest{
		ID:      t.ID,
		Name:    t.Name,
		Hash:    registry.Digest("sha256:" + hex.EncodeToString(t.Hash[:])),
		Grants:  t.Grants,
		Expires: t.Expires,
	}
}

// Token returns the requested token with its creation time. Errors: CodeInvalid.
func (r TokenRequest) Token(created time.Time) (storage.Token, error) {
	t := storage.Token{ID: r.ID, Name: r.Name, Grants: r.Grants, Created: created, Expires: r.Expires}
	if err := r.Hash.Validate(); err != nil || r.Hash.Algorithm() != "sha256" {
		return storage.Token{}, registry.Errorf(registry.CodeInvalid,
			"hash %q: want sha256: and 64 hexadecimal digits", r.Hash)
	}
	hash, err := hex.DecodeString(r.Hash.Encoded())
	copy(t.Hash[:], hash)
	if err != nil || len(hash) != sha256.Size {
		return storage.Token{}, registry.Errorf(registry.CodeInvalid,
			"hash %q: want sha256: and 64 hexadecimal digits", r.Hash)
	}
	return t, t.Validate()
}
