package signer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/signer"
)

var (
	_ storage.SignEvidence   = new(signer.Keyring).Sign
	_ storage.VerifyEvidence = new(signer.Trust).Verify
)

// folder is a folder of private keys in memory that counts how often each is opened.
type folder struct {
	mu    sync.Mutex
	keys  map[string]signer.Signer // by file name; nil: cannot be opened
	opens map[string]int
}

func (f *folder) open(_ context.Context, path string) (signer.Signer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := filepath.Base(path)
	key, ok := f.keys[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	f.opens[name]++
	if key == nil {
		return nil, errors.New("wrong password")
	}
	return key, nil
}

func newFolder(keys map[string]signer.Signer) *folder {
	return &folder{keys: keys, opens: make(map[string]int)}
}

func TestKeyringPicksByRole(t *testing.T) {
	t.Parallel()
	promoter, local, service := newSigner(t, newKey(t)), newSigner(t, newKey(t)), newSigner(t, newKey(t))
	keys := newFolder(map[string]signer.Signer{"promoter.key": promoter, "verifier.kms": service, "local.key": local, "local.kms": service})
	ring := &signer.Keyring{Dir: "keys", Open: keys.open}
	if len(keys.opens) != 0 {
		t.Error("a key was opened before anything was signed")
	}
	for _, role := range evidence.Roles() {
		want := local
		switch role {
		case evidence.RoleAttester: // speaks for other people: never with the key of all roles
			if _, err := ring.Sign(t.Context(), role, newStatement(t)); registry.CodeOf(err) != registry.CodeUnavailable ||
				!strings.HasSuffix(err.Error(), "want keys/attester.key") {
				t.Errorf("attester without a key of its own: error %v, want CodeUnavailable", err)
			}
			continue
		case evidence.RolePromoter:
			want = promoter
		case evidence.RoleVerifier:
			want = service
		}
		for range 3 {
			bundle, err := ring.Sign(t.Context(), role, newStatement(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := trustOnly(t, want).Verify(t.Context(), bundle, resource); err != nil {
				t.Errorf("%s: %v", role, err)
			}
		}
	}
	if _, err := ring.Sign(t.Context(), evidence.RolePublisher, newStatement(t)); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("as publisher, without a key of its own: error %v, want CodeUnavailable", err)
	}
	keys.keys["publisher.key"] = service
	if s, err := ring.Signer(t.Context(), evidence.RolePublisher); err != nil || s.KeyID() != service.KeyID() {
		t.Errorf("as publisher, with a key of its own: error %v, want that key", err)
	}
	if keys.opens["local.key"] != 1 || keys.opens["promoter.key"] != 1 || keys.opens["verifier.kms"] != 1 || keys.opens["local.kms"] != 0 {
		t.Errorf("keys were opened %v times, want once each", keys.opens)
	}
}

func TestKeyringOpensOnceWhenMany(t *testing.T) {
	t.Parallel()
	keys := newFolder(map[string]signer.Signer{"local.key": newSigner(t, newKey(t))})
	ring := &signer.Keyring{Open: keys.open}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := ring.Sign(t.Context(), evidence.RoleBuilder, newStatement(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if keys.opens["local.key"] != 1 {
		t.Errorf("local.key was opened %d times, want once", keys.opens["local.key"])
	}
}

func TestKeyringWithoutKey(t *testing.T) {
	t.Parallel()
	keys := newFolder(map[string]signer.Signer{})
	ring := &signer.Keyring{Dir: "some/keys", Open: keys.open}
	_, err := ring.Sign(t.Context(), evidence.RoleVerifier, newStatement(t))
	if !registry.HasCode(err, registry.CodeUnavailable) {
		t.Fatalf("error %v, want CodeUnavailable", err)
	}
	for _, path := range []string{"verifier.key", "local.key"} {
		if want := filepath.Join("some/keys", path); !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
	if hints := strings.Join(registry.Hints(err), " "); !strings.Contains(hints, "mlpromote key generate") {
		t.Errorf("hints %q do not say how to make a key", hints)
	}
	keys.keys["local.key"] = newSigner(t, newKey(t))
	if _, err := ring.Sign(t.Context(), evidence.RoleVerifier, newStatement(t)); err != nil {
		t.Errorf("a key that was made in the meantime: %v", err)
	}
}

// A role's own key that does not open is no reason to sign with another.
func TestKeyringKeepsErrors(t *testing.T) {
	t.Parallel()
	keys := newFolder(map[string]signer.Signer{"builder.key": nil, "local.key": newSigner(t, newKey(t))})
	ring := &signer.Keyring{Open: keys.open}
	for range 2 {
		if _, err := ring.Sign(t.Context(), evidence.RoleBuilder, newStatement(t)); err == nil || !strings.Contains(err.Error(), "wrong password") {
			t.Errorf("error %v, want that of opening", err)
		}
	}
	if keys.opens["builder.key"] != 1 || keys.opens["local.key"] != 0 {
		t.Errorf("keys were opened %v times", keys.opens)
	}
}

// A service that does not answer is asked again.
func TestKeyringAsksAgain(t *testing.T) {
	t.Parallel()
	answer := newSigner(t, newKey(t))
	asked := 0
	ring := &signer.Keyring{Open: func(_ context.Context, path string) (signer.Signer, error) {
		if path != "builder.kms" {
			return nil, fs.ErrNotExist
		}
		if asked++; asked == 1 {
			return nil, registry.Errorf(registry.CodeUnavailable, "no answer")
		}
		return answer, nil
	}}
	if _, err := ring.Sign(t.Context(), evidence.RoleBuilder, newStatement(t)); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("the first time: error %v, want CodeUnavailable", err)
	}
	if _, err := ring.Sign(t.Context(), evidence.RoleBuilder, newStatement(t)); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestKeyringRefuses(t *testing.T) {
	t.Parallel()
	if _, err := new(signer.Keyring).Sign(t.Context(), evidence.RoleBuilder, newStatement(t)); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("zero keyring: %v, want CodeUnavailable", err)
	}
	keys := newFolder(map[string]signer.Signer{"passwd.key": newSigner(t, newKey(t))})
	ring := &signer.Keyring{Dir: "keys", Open: keys.open}
	if _, err := ring.Sign(t.Context(), "../../etc/passwd", newStatement(t)); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("role that is a path: %v, want CodeInvalid", err)
	}
}
