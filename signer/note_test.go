package signer_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

const noteName, noteText = "mlpromote.dev/history/local/x", "mlpromote.dev/history/local/x\n7\n"

func newNote(t testing.TB, s signer.Signer) string {
	t.Helper()
	note, err := s.SignNote(t.Context(), noteName, noteText)
	if err != nil {
		t.Fatal(err)
	}
	return string(note)
}

// The shape is what https://c2sp.org/signed-note says of signature type 2, read here without the
// library that writes it.
func TestNoteShape(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	s := newSigner(t, key)
	text, line, _ := strings.Cut(newNote(t, s), "\n\n")
	encoded, ok := strings.CutPrefix(line, "— "+noteName+" ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "\n"))
	if !ok || err != nil || text+"\n" != noteText || strings.Count(line, "\n") != 1 {
		t.Fatalf("text %q, signature %q, error %v", text, line, err)
	}
	if id := hex.EncodeToString(raw[:4]); !strings.HasPrefix(s.KeyID(), id) {
		t.Errorf("key identifier %s, want the beginning of %s", id, s.KeyID())
	}
	if sum := sha256.Sum256([]byte(noteText)); !ecdsa.VerifyASN1(&key.PublicKey, sum[:], raw[4:]) {
		t.Error("the signature is not ECDSA over the SHA-256 of the text")
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	want := noteName + "+" + s.KeyID()[:8] + "+" + base64.StdEncoding.EncodeToString(append([]byte{2}, der...))
	if got, err := signer.NoteKey(noteName, s.PublicKeyPEM()); err != nil || got != want {
		t.Errorf("verifier key %q (error %v), want %q", got, err, want)
	}
}

// A key signs no text that could be taken for an envelope, nor one that does not say what it is.
func TestNoteIsNoEnvelope(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	pae := "DSSEv1 28 application/vnd.in-toto+json 2 {}"
	for name, c := range map[string]struct{ name, text string }{
		"another first line":  {noteName, "another\n7\n"},
		"no text":             {noteName, ""},
		"an envelope":         {pae, pae + "\n"},
		"no name":             {"", "\n7\n"},
		"a name with a space": {"a b", "a b\n7\n"},
		"no final newline":    {noteName, noteName + "\n7"},
		"a control character": {noteName, noteName + "\n\x1b[2J\n"},
	} {
		if note, err := s.SignNote(t.Context(), c.name, c.text); err == nil || note != nil {
			t.Errorf("%s: signed as %q, want an error", name, note)
		}
	}
	// What was signed in DSSE is no note, whatever is made of it.
	_, line, _ := strings.Cut(newNote(t, s), "\n\n")
	if _, err := trustOnly(t, s).VerifyNote(t.Context(), []byte(pae+"\n\n"+line),
		evidence.RolePromoter, noteName, "oci://local/"); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a signature of a note under an envelope: error %v, want CodeTrust", err)
	}
}

// Of several keys the one in the best state counts, and a wrong signature of a known key spoils all.
func TestNoteByManyKeys(t *testing.T) {
	t.Parallel()
	good, old, stranger := newSigner(t, newKey(t)), newSigner(t, newKey(t)), newSigner(t, newKey(t))
	entry := func(path string, state evidence.KeyState) trust.TrustEntry {
		return trust.TrustEntry{Key: path, Roles: []evidence.Role{evidence.RolePromoter}, Resources: []string{"oci://local/"}, State: state}
	}
	trust := newTrust(t, files{"good.pub": good.PublicKeyPEM(), "old.pub": old.PublicKeyPEM()},
		entry("good.pub", ""), entry("old.pub", evidence.KeyRevoked))
	line := func(s signer.Signer) string {
		_, line, _ := strings.Cut(newNote(t, s), "\n\n")
		return line
	}
	bent := func(line string) string {
		end := len(line) - 6 // inside of the signature, before the padding
		return line[:end] + map[bool]string{true: "B", false: "A"}[line[end] == 'A'] + line[end+1:]
	}
	for name, c := range map[string]struct {
		lines  string
		signer string // empty: refused
		state  evidence.KeyState
	}{
		"a good one":                  {line(good), good.KeyID(), evidence.KeyTrusted},
		"a revoked one":               {line(old), old.KeyID(), evidence.KeyRevoked},
		"both":                        {line(old) + line(good), good.KeyID(), evidence.KeyTrusted},
		"a stranger's before":         {line(stranger) + line(good), good.KeyID(), evidence.KeyTrusted},
		"a stranger's alone":          {line(stranger), "", ""},
		"a wrong one":                 {bent(line(good)), "", ""},
		"a wrong one beside another":  {line(old) + bent(line(good)), "", ""},
		"a stranger's that is wrong":  {bent(line(stranger)) + line(good), good.KeyID(), evidence.KeyTrusted},
		"under the name of another":   {strings.Replace(line(good), noteName, noteName+"y", 1), "", ""},
		"no signature":                {"", "", ""},
		"a hundred and one of others": {strings.Repeat(line(stranger), 101) + line(good), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := trust.VerifyNote(t.Context(), []byte(noteText+"\n"+c.lines), evidence.RolePromoter, noteName, "oci://local/")
			if c.signer == "" && (!registry.HasCode(err, registry.CodeTrust) || got.Text != "" || got.Signer != "") {
				t.Errorf("got %+v, error %v; want CodeTrust", got, err)
			}
			if c.signer != "" && (err != nil || got.Signer != c.signer || got.Key != c.state || got.Text != noteText) {
				t.Errorf("got %+v, error %v; want %s, %s", got, err, c.signer, c.state)
			}
		})
	}
	large := noteText + strings.Repeat("x", signer.MaxNote) + "\n\n" + line(good)
	if _, err := trust.VerifyNote(t.Context(), []byte(large), evidence.RolePromoter, noteName,
		"oci://local/"); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a note of more than %d bytes: error %v, want CodeTrust", signer.MaxNote, err)
	}
}

func TestKeyringSignsNotes(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	keys := newFolder(map[string]signer.Signer{"promoter.key": s})
	ring := &signer.Keyring{Open: keys.open}
	note, err := ring.SignNote(t.Context(), evidence.RolePromoter, noteName, noteText)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := trustOnly(t, s).VerifyNote(t.Context(), note, evidence.RolePromoter, noteName, "oci://local/"); err != nil ||
		got.Signer != s.KeyID() {
		t.Errorf("got %+v, error %v; want %s", got, err, s.KeyID())
	}
	if _, err := ring.SignNote(t.Context(), evidence.RoleBuilder, noteName, noteText); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("a role without a key: error %v, want CodeUnavailable", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.SignNote(ended, noteName, noteText); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("after the end: error %v, want CodeUnavailable", err)
	}
}

// A role needs a key that is trusted in that role: one of another role, of another resource, or without a file signs nothing.
func TestNoteInAnotherRole(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	note := []byte(newNote(t, s))
	as := func(role evidence.Role, resource string) trust.TrustEntry {
		return trust.TrustEntry{Key: "a.pub", Roles: []evidence.Role{role}, Resources: []string{resource}}
	}
	for name, c := range map[string]struct {
		entry trust.TrustEntry
		keys  files
		says  string // empty: accepted
	}{
		"a promoter":                  {as(evidence.RolePromoter, "oci://local/"), files{"a.pub": s.PublicKeyPEM()}, ""},
		"a builder":                   {as(evidence.RoleBuilder, "oci://local/"), files{"a.pub": s.PublicKeyPEM()}, "there is no such key"},
		"a promoter of other content": {as(evidence.RolePromoter, "oci://other/"), files{"a.pub": s.PublicKeyPEM()}, "there is no such key"},
		"a promoter without a file":   {as(evidence.RolePromoter, "oci://local/"), files{}, "there is no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newTrust(t, c.keys, c.entry).VerifyNote(t.Context(), note, evidence.RolePromoter, noteName, "oci://local/")
			switch {
			case c.says == "" && (err != nil || got.Signer != s.KeyID()):
				t.Errorf("signer %q, error %v; want %s", got.Signer, err, s.KeyID())
			case c.says != "" && (!registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), c.says) || got.Text != ""):
				t.Errorf("text %q, error %v; want CodeTrust with %q", got.Text, err, c.says)
			}
		})
	}
}

// person signs as an identity, which has no key.
type person struct{ signer.Signer }

func (person) KeyID() string { return "" }

// Where a role signs as an identity, the key of the name local signs its notes.
func TestIdentitySignsNoNotes(t *testing.T) {
	t.Parallel()
	local, service := newSigner(t, newKey(t)), newSigner(t, newKey(t))
	for name, c := range map[string]struct {
		keys map[string]signer.Signer
		by   signer.Signer // nil: an error
		says string
	}{
		"with a key":                       {map[string]signer.Signer{"promoter.identity": person{}, "local.key": local}, local, ""},
		"with a key of a service":          {map[string]signer.Signer{"promoter.identity": person{}, "local.kms": service}, service, ""},
		"without a key":                    {map[string]signer.Signer{"promoter.identity": person{}}, nil, "want a key, keys/local.key"},
		"with a key that cannot be opened": {map[string]signer.Signer{"promoter.identity": person{}, "local.key": nil}, nil, "wrong password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := &signer.Keyring{Dir: "keys", Open: newFolder(c.keys).open}
			note, err := ring.SignNote(t.Context(), evidence.RolePromoter, noteName, noteText)
			if c.by == nil {
				if err == nil || !strings.Contains(err.Error(), c.says) || note != nil {
					t.Errorf("note %q, error %v; want an error with %q", note, err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := trustOnly(t, c.by).VerifyNote(t.Context(), note, evidence.RolePromoter, noteName, "oci://local/")
			if err != nil || got.Signer != c.by.KeyID() {
				t.Errorf("signed by %q, error %v; want %s", got.Signer, err, c.by.KeyID())
			}
		})
	}
}

// A note of exactly as many bytes as allowed is read.
func TestLargestNote(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	for want, accepted := range map[int]bool{signer.MaxNote: true, signer.MaxNote + 1: false} {
		var note []byte
		for filler := want; len(note) != want; filler -= len(note) - want { // a signature has 70 to 72 bytes
			var err error
			if note, err = s.SignNote(t.Context(), noteName, noteName+"\n"+strings.Repeat("x", filler)+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := trustOnly(t, s).VerifyNote(t.Context(), note, evidence.RolePromoter, noteName, "oci://local/")
		if accepted != (err == nil) || accepted != (got.Signer == s.KeyID()) {
			t.Errorf("%d bytes: signer %q, error %v; want it accepted: %t", want, got.Signer, err, accepted)
		}
	}
}
