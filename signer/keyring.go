package signer

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// LocalKey is the name of the key for all roles without a key of their own.
const LocalKey = "local"

// Keyring signs in roles with the keys of a folder: Dir/<role>.key, Dir/<role>.kms or Dir/<role>.identity, or
// else the keys named local; a publisher and an attester have keys of their own. A file with the extension .kms names a
// key that a key management service has, and .identity configures signing without a key. A Keyring opens a key
// at the first signature and keeps it, because opening takes a
// fifth of a second and 64 MiB. It is safe for concurrent use and must not be copied. The zero
// Keyring has no keys.
type Keyring struct {
	// Dir is the folder of the keys.
	Dir string
	// Open opens the key of a file. If the file does not exist, its error has [fs.ErrNotExist] in its
	// chain. Other errors are kept, so that a wrong password is tried only once, but for
	// CodeUnavailable: a service that did not answer is asked again. Nil: no keys.
	Open func(ctx context.Context, path string) (Signer, error)

	mu     sync.Mutex
	opened map[string]openedKey // by path
}

// openedKey is the result of opening a key file.
type openedKey struct {
	signer Signer
	err    error
}

// Sign signs a statement in a role. It is a [storage.SignEvidence]. Errors: CodeUnavailable if
// there is no key for the role; CodeInvalid for an unknown role or an invalid statement; those
// of Open.
func (k *Keyring) Sign(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
	s, err := k.Signer(ctx, role)
	if err != nil {
		return nil, err
	}
	return s.Sign(ctx, statement)
}

// Signer returns the signer for a role, and opens its key if necessary. Errors: as Sign.
func (k *Keyring) Signer(ctx context.Context, role evidence.Role) (Signer, error) {
	if !slices.Contains(evidence.KeyRoles(), role) {
		return nil, registry.Errorf(registry.CodeInvalid, "sign as %q: want one of %v", role, evidence.KeyRoles())
	}
	extensions := []string{".key", ".kms", ".identity"}
	if needsOwnKey(role) {
		extensions = extensions[:2] // identities cannot have these roles
	}
	s, err := k.first(ctx, role, extensions...)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	own, shared := filepath.Join(k.Dir, string(role)), filepath.Join(k.Dir, LocalKey)
	want := own + ".key"
	if !needsOwnKey(role) {
		want += " or " + shared + ".key"
	}
	err = registry.Lastingf(registry.CodeUnavailable, "sign as %s: there is no key: want %s", role, want)
	return nil, registry.WithHint(err,
		"make one with 'mlpromote key generate', name one of a key management service with 'mlpromote key use', "+
			"sign without one with 'mlpromote key identity', or name the folder that has it with --keys")
}

// needsOwnKey reports whether a role has a key of its own. Whoever takes the key of the promoter can neither change
// who is trusted nor speak for other people.
func needsOwnKey(role evidence.Role) bool {
	return role == evidence.RolePublisher || role == evidence.RoleAttester
}

// first opens the first file that there is, of the role or else of the name local. Errors: ErrNotExist in
// the chain if there is none; those of open.
func (k *Keyring) first(ctx context.Context, role evidence.Role, extensions ...string) (Signer, error) {
	names := []string{string(role), LocalKey}
	if needsOwnKey(role) {
		names = names[:1] // whoever takes the key of the promoter cannot change who is trusted
	}
	for _, name := range names {
		for _, extension := range extensions {
			if err := ctx.Err(); err != nil {
				return nil, registry.Errorf(registry.CodeUnavailable, "sign as %s: %w", role, err)
			}
			s, err := k.open(ctx, filepath.Join(k.Dir, name+extension))
			if !errors.Is(err, fs.ErrNotExist) {
				return s, err
			}
		}
	}
	return nil, fs.ErrNotExist
}

// open opens a key file, unless it was opened before. A missing file is looked for again at the
// next call.
func (k *Keyring) open(ctx context.Context, path string) (Signer, error) {
	if k.Open == nil {
		return nil, fs.ErrNotExist
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if o, ok := k.opened[path]; ok {
		return o.signer, o.err
	}
	s, err := k.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || registry.HasCode(err, registry.CodeUnavailable) {
		return nil, err
	}
	if k.opened == nil {
		k.opened = make(map[string]openedKey)
	}
	k.opened[path] = openedKey{s, err}
	return s, err
}
