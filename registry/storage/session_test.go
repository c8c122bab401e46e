package storage_test

import (
	"bytes"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestSessionValidate(t *testing.T) {
	t.Parallel()
	good := storage.Session{
		ID: "aaaaaaaaaaaaaaaa", Hash: [32]byte{1}, Owner: "token a", Token: "a", Created: time.Unix(1, 0), Expires: time.Unix(2, 0),
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	signedIn := good
	signedIn.Token, signedIn.Issuer, signedIn.Claims = "", "https://id.example.com", bytes.Repeat([]byte{' '}, storage.MaxClaims)
	if err := signedIn.Validate(); err != nil {
		t.Errorf("a session with the largest claims: %v", err)
	}
	for name, change := range map[string]func(s *storage.Session){
		"claims that are too long": func(s *storage.Session) { *s = signedIn; s.Claims = append(s.Claims, ' ') },
		"no id":                    func(s *storage.Session) { s.ID = "" },
		"no hash":                  func(s *storage.Session) { s.Hash = [32]byte{} },
		"no owner":                 func(s *storage.Session) { s.Owner = "" },
		"neither token nor issuer": func(s *storage.Session) { s.Token = "" },
		"both":                     func(s *storage.Session) { s.Issuer, s.Claims = "https://id.example.com", []byte("{}") },
		"claims of a token":        func(s *storage.Session) { s.Claims = []byte("{}") },
		"issuer without claims":    func(s *storage.Session) { s.Token, s.Issuer = "", "https://id.example.com" },
		"never ends":               func(s *storage.Session) { s.Expires = time.Time{} },
		"ended before it began":    func(s *storage.Session) { s.Expires = s.Created },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
}
