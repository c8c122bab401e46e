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
	if _, err := trustOnly(t, s).VerifyNote(t.Context(), []byte(pae+"\n\n"+line), registry.RolePromoter, noteName, "oci://local/"); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a signature of a note under an envelope: error %v, want CodeTrust", err)
	}
}

// Of several keys the one in the best state counts, and a wrong signature of a known key spoils all.
func TestNoteByManyKeys(t *testing.T) {
	t.Parallel()
	good, old, stranger := newSigner(t, newKey(t)), newSigner(t, newKey(t)), newSigner(t, newKey(t))
	entry := func(path string, state registry.KeyState) registry.TrustEntry {
		return registry.TrustEntry{Key: path, Roles: []registry.Role{registry.RolePromoter}, Resources: []string{"oci://local/"}, State: state}
	}
	trust := newTrust(t, files{"good.pub": good.PublicKeyPEM(), "old.pub": old.PublicKeyPEM()}, entry("good.pub", ""), entry("old.pub", registry.KeyRevoked))
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
		state  registry.KeyState
	}{
		"a good one":                  {line(good), good.KeyID(), registry.KeyTrusted},
		"a revoked one":               {line(old), old.KeyID(), registry.KeyRevoked},
		"both":                        {line(old) + line(good), good.KeyID(), registry.KeyTrusted},
		"a stranger's before":         {line(stranger) + line(good), good.KeyID(), registry.KeyTrusted},
		"a stranger's alone":          {line(stranger), "", ""},
		"a wrong one":                 {bent(line(good)), "", ""},
		"a wrong one beside another":  {line(old) + bent(line(good)), "", ""},
		"a stranger's that is wrong":  {bent(line(stranger)) + line(good), good.KeyID(), registry.KeyTrusted},
		"under the name of another":   {strings.Replace(line(good), noteName, noteName+"y", 1), "", ""},
		"no signature":                {"", "", ""},
		"a hundred and one of others": {strings.Repeat(line(stranger), 101) + line(good), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := trust.VerifyNote(t.Context(), []byte(noteText+"\n"+c.lines), registry.RolePromoter, noteName, "oci://local/")
			if c.signer == "" && (!registry.HasCode(err, registry.CodeTrust) || got.Text != "" || got.Signer != "") {
				t.Errorf("got %+v, error %v; want CodeTrust", got, err)
			}
			if c.signer != "" && (err != nil || got.Signer != c.signer || got.Key != c.state || got.Text != noteText) {
				t.Errorf("got %+v, error %v; want %s, %s", got, err, c.signer, c.state)
			}
		})
	}
	large := noteText + strings.Repeat("x", signer.MaxNote) + "\n\n" + line(good)
	if _, err := trust.VerifyNote(t.Context(), []byte(large), registry.RolePromoter, noteName, "oci://local/"); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a note of more than %d bytes: error %v, want CodeTrust", signer.MaxNote, err)
	}
}

func TestKeyringSignsNotes(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	keys := newFolder(map[string]signer.Signer{"promoter.key": s})
	ring := &signer.Keyring{Open: keys.open}
	note, err := ring.SignNote(t.Context(), registry.RolePromoter, noteName, noteText)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := trustOnly(t, s).VerifyNote(t.Context(), note, registry.RolePromoter, noteName, "oci://local/"); err != nil || got.Signer != s.KeyID() {
		t.Errorf("got %+v, error %v; want %s", got, err, s.KeyID())
	}
	if _, err := ring.SignNote(t.Context(), registry.RoleBuilder, noteName, noteText); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("a role without a key: error %v, want CodeUnavailable", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.SignNote(ended, noteName, noteText); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("after the end: error %v, want CodeUnavailable", err)
	}
}
