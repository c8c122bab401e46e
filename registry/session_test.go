package registry_test

import (
	"bytes"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

func TestSessionValidate(t *testing.T) {
	t.Parallel()
	good := registry.Session{
		ID: "aaaaaaaaaaaaaaaa", Hash: [32]byte{1}, Owner: "token a", Token: "a", Created: time.Unix(1, 0), Expires: time.Unix(2, 0),
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	signedIn := good
	signedIn.Token, signedIn.Issuer, signedIn.Claims = "", "https://id.example.com", bytes.Repeat([]byte{' '}, registry.MaxClaims)
	if err := signedIn.Validate(); err != nil {
		t.Errorf("a session with the largest claims: %v", err)
	}
	for name, change := range map[string]func(s *registry.Session){
		"claims that are too long": func(s *registry.Session) { *s = signedIn; s.Claims = append(s.Claims, ' ') },
		"no id":                    func(s *registry.Session) { s.ID = "" },
		"no hash":                  func(s *registry.Session) { s.Hash = [32]byte{} },
		"no owner":                 func(s *registry.Session) { s.Owner = "" },
		"neither token nor issuer": func(s *registry.Session) { s.Token = "" },
		"both":                     func(s *registry.Session) { s.Issuer, s.Claims = "https://id.example.com", []byte("{}") },
		"claims of a token":        func(s *registry.Session) { s.Claims = []byte("{}") },
		"issuer without claims":    func(s *registry.Session) { s.Token, s.Issuer = "", "https://id.example.com" },
		"never ends":               func(s *registry.Session) { s.Expires = time.Time{} },
		"ended before it began":    func(s *registry.Session) { s.Expires = s.Created },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
}
