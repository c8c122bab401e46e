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
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
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
	Roots func() (roots []trust.Root, load func(path string) ([]byte, error), err error)
	Now   storage.Clock
}

// Identity says how to sign with certificates for an identity.
type Identity = authority.Identity

// password opens the keys; cosign's variable, so that one setting serves both.
func (f Folder) password() []byte { return []byte(f.Getenv("COSIGN_PASSWORD")) }

// Open opens a key file, the key that a file NAME.kms names, or the identity that NAME.identity describes. If
// the folder has timestamps.yaml, signatures get timestamps. Errors: those of [keyfile.Open],
// [kms.Open], [authority.Open] and [authority.LoadTimestamps]; CodeInvalid if there are two of one name.
func (f Folder) Open(ctx context.Context, path string) (signer.Signer, error) {
	if _, err := os.Lstat(path); err != nil {
		return nil, registry.Lastingf(registry.CodeUnavailable, "open key: %w", err)
	}
	if err := alone(path); err != nil {
		return nil, err
	}
	stamps, err := authority.LoadTimestamps(f.Dir)
	unstamped := errors.Is(err, fs.ErrNotExist)
	if err != nil && !unstamped {
		return nil, err
	}
	var s signer.Signer
	switch filepath.Ext(path) {
	case authority.Extension:
		return authority.Open(path, authority.Settings{Timestamps: stamps, Getenv: f.Getenv, Roots: f.Roots, Now: f.Now})
	case kms.Extension:
		s, err = kms.Open(ctx, path)
	default:
		s, err = keyfile.Open(path, f.password())
	}
	if err != nil || unstamped {
		return s, err
	}
	return f.sealed(s, stamps)
}

// extensions are those of the files that say how a role signs.
var extensions = []string{".key", kms.Extension, authority.Extension}

// alone refuses a file beside which another says how the same role signs: a forgotten one would sign.
func alone(path string) error {
	base := strings.TrimSuffix(path, filepath.Ext(path))
	for _, extension := range extensions {
		other := base + extension
		if _, err := os.Lstat(other); other != path && err == nil {
			return registry.Errorf(registry.CodeInvalid, "there are two keys of one name, %s and %s: move one away", path, other)
		}
	}
	return nil
}

func (f Folder) sealed(s signer.Signer, stamps authority.Timestamps) (signer.Signer, error) {
	return signer.Sealed(s, signer.Seal{Options: stamps.Options, Roots: f.Roots, Now: f.Now})
}

// New makes a key pair, by default one that plays every role. It returns the file of the
// public half and its key ID. Errors: CodeConflict if there is one of that name.
func (f Folder) New(role evidence.Role) (path, id string, err error) {
	name := cmp.Or(string(role), signer.LocalKey)
	for _, extension := range extensions[1:] {
		if err := free(filepath.Join(f.Dir, name+extension)); err != nil {
			return "", "", err
		}
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
func (f Folder) Use(ctx context.Context, role evidence.Role, uri string) (path, id string, err error) {
	base := filepath.Join(f.Dir, cmp.Or(string(role), signer.LocalKey))
	for _, extension := range append([]string{".pub"}, extensions...) {
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

// Any reports whether the folder has a file with which a role signs.
func (f Folder) Any() (bool, error) {
	for _, extension := range extensions {
		found, err := filepath.Glob(filepath.Join(f.Dir, "*"+extension))
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
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
