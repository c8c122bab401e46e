// Package keys is the folder of signing keys: key files, keys of a service, and what
// signatures get beside them.
package keys

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/authority"
	"mlpromote.dev/mlpromote/signer/keyfile"
	"mlpromote.dev/mlpromote/signer/kms"
)

// Folder is a folder of signing keys.
type Folder struct {
	Dir    string
	Getenv func(name string) string
	// Roots are the authorities that environments.yaml trusts, as [signer.Seal] has them.
	Roots func() (roots []registry.Root, load func(path string) ([]byte, error), err error)
	Now   registry.Clock
}

// password opens the keys; cosign's variable, so that one setting serves both.
func (f Folder) password() []byte { return []byte(f.Getenv("COSIGN_PASSWORD")) }

// Open opens a key file, or the key that a file NAME.kms names. If the folder has timestamps.yaml, its
// signatures get timestamps. Errors: those of [keyfile.Open], [kms.Open] and
// [authority.LoadTimestamps]; CodeInvalid if there are two of one name.
func (f Folder) Open(ctx context.Context, path string) (signer.Signer, error) {
	s, err := f.open(ctx, path)
	if err != nil {
		return nil, err
	}
	stamps, err := authority.LoadTimestamps(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return f.sealed(s, stamps)
}

func (f Folder) open(ctx context.Context, path string) (signer.Signer, error) {
	name, private := strings.CutSuffix(path, ".key")
	if !private {
		return kms.Open(ctx, path)
	}
	s, err := keyfile.Open(path, f.password())
	if _, two := os.Lstat(name + kms.Extension); err == nil && two == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "there are two keys of one name, %s and %s: move one away", path, name+kms.Extension)
	}
	return s, err
}

func (f Folder) sealed(s signer.Signer, stamps authority.Timestamps) (signer.Signer, error) {
	return signer.Sealed(s, signer.Seal{Options: stamps.Options, Roots: f.Roots, Now: f.Now})
}

// New makes a key pair, by default one that plays every role. It returns the file of the
// public half and its key ID. Errors: CodeConflict if there is one of that name.
func (f Folder) New(role registry.Role) (path, id string, err error) {
	name := cmp.Or(string(role), signer.LocalKey)
	if err := free(filepath.Join(f.Dir, name+kms.Extension)); err != nil {
		return "", "", err
	}
	public, err := keyfile.Generate(f.Dir, name, f.password())
	if err != nil {
		return "", "", err
	}
	id, err = signer.KeyID(public)
	return filepath.Join(f.Dir, name+".pub"), id, err
}

// Use makes the key with the URI that of a role, by default of every role. The folder gets a
// file with the URI, and one with the public key. It returns the latter and the key ID. Errors: CodeConflict if
// there is a key of that name; those of [kms.OpenURI].
func (f Folder) Use(ctx context.Context, role registry.Role, uri string) (path, id string, err error) {
	base := filepath.Join(f.Dir, cmp.Or(string(role), signer.LocalKey))
	for _, extension := range []string{".key", ".pub", kms.Extension} {
		if err := free(base + extension); err != nil {
			return "", "", err
		}
	}
	s, err := kms.OpenURI(ctx, uri)
	if err != nil {
		return "", "", err
	}
	if err := f.write(base+".pub", s.PublicKeyPEM(), 0o644); err != nil {
		return "", "", err
	}
	if err := f.write(base+kms.Extension, []byte(uri+"\n"), 0o600); err != nil {
		return "", "", errors.Join(err, os.Remove(base+".pub"))
	}
	return base + ".pub", s.KeyID(), nil
}

// write makes a file in the folder, and the folder. It replaces none.
func (f Folder) write(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return registry.Lastingf(registry.CodeUnavailable, "make folder for keys: %w", err)
	}
	if err := atomicfile.Create(path, data, mode); err != nil {
		return notWritten(path, err)
	}
	return nil
}

// free refuses a file that exists.
func free(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return notWritten(path, cmp.Or(err, fs.ErrExist))
	}
	return nil
}

func notWritten(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return registry.Lastingf(registry.CodeConflict, "write key %s: %w; keys are never replaced: move it away", path, err)
	}
	return registry.Lastingf(registry.CodeUnavailable, "write key %s: %w", path, err)
}
