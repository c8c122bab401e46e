package keys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/keys"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

func folder(t *testing.T) keys.Folder {
	t.Helper()
	return keys.Folder{
		Dir: t.TempDir(), Getenv: func(string) string { return "" }, Now: time.Now,
		Roots: func() ([]trust.Root, func(string) ([]byte, error), error) { return nil, nil, nil },
	}
}

func write(t *testing.T, f keys.Folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const identity = "fulcio: https://fulcio.example.com\ntoken: github\n"

// A promoter that is an identity signs checkpoints with the key local, and without one none.
func TestIdentitySignsNotes(t *testing.T) {
	t.Parallel()
	f := folder(t)
	write(t, f, "timestamps.yaml", "url: https://tsa.example.com\n")
	write(t, f, "promoter.identity", identity)
	ring := &signer.Keyring{Dir: f.Dir, Open: f.Open}
	if _, err := ring.SignNote(t.Context(), evidence.RolePromoter, "local", "local\nx\n"); err == nil ||
		!strings.Contains(err.Error(), "an identity signs none: want a key") {
		t.Errorf("got %v, want that an identity signs none", err)
	}
	if _, _, err := f.New(""); err != nil {
		t.Fatal(err)
	}
	note, err := ring.SignNote(t.Context(), evidence.RolePromoter, "local", "local\nx\n")
	if err != nil || !strings.HasPrefix(string(note), "local\nx\n") {
		t.Errorf("got %q, %v, want the note with a signature", note, err)
	}
	if s, err := ring.Signer(t.Context(), evidence.RolePromoter); err != nil || s.KeyID() != "" {
		t.Errorf("got %v, %v, want the identity for statements", s, err)
	}
}

// A role signs in one way: with two files nothing is signed, whichever comes first.
func TestTwoOfOneName(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"builder.key", "builder.identity"}, {"builder.kms", "builder.identity"}, {"builder.key", "builder.kms"}} {
		f := folder(t)
		write(t, f, "timestamps.yaml", "url: https://tsa.example.com\n")
		write(t, f, names[0], identity)
		write(t, f, names[1], identity)
		_, err := (&signer.Keyring{Dir: f.Dir, Open: f.Open}).Signer(t.Context(), evidence.RoleBuilder)
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "there are two keys of one name") {
			t.Errorf("%v: got %v, want CodeInvalid: two of one name", names, err)
		}
	}
}

// An identity needs something that dates its signatures, when it is named and when it signs.
func TestIdentityIsDated(t *testing.T) {
	t.Parallel()
	f := folder(t)
	i := keys.Identity{Fulcio: "https://fulcio.example.com", Token: "github"}
	if path, err := f.UseIdentity(evidence.RoleBuilder, i); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("got %s, %v, want CodeInvalid", path, err)
	}
	i.Rekor = "https://rekor.example.com"
	if path, err := f.UseIdentity(evidence.RolePublisher, i); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("publisher: got %s, %v, want CodeInvalid", path, err)
	}
	if _, err := f.UseIdentity(evidence.RoleBuilder, i); err != nil {
		t.Error(err)
	}
	write(t, f, "builder.identity", identity)
	if _, err := (&signer.Keyring{Dir: f.Dir, Open: f.Open}).Signer(t.Context(), evidence.RoleBuilder); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("got %v, want CodeInvalid", err)
	}
}
