package wiring

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
	"mlpromote.dev/mlpromote/signer/keyfile"
	"mlpromote.dev/mlpromote/signer/kms"
)

// openKey opens a key file, or the key that a file NAME.kms names. Errors: those of
// [keyfile.Open] and [kms.Open]; CodeInvalid if there are both.
func (l Location) openKey(ctx context.Context, path string) (signer.Signer, error) {
	name, private := strings.CutSuffix(path, ".key")
	if !private {
		return kms.Open(ctx, path)
	}
	s, err := keyfile.Open(path, l.password())
	if _, two := os.Lstat(name + kms.Extension); err == nil && two == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "there are two keys of one name, %s and %s: move one away", path, name+kms.Extension)
	}
	return s, err
}

// NewKey makes a key pair in the folder of keys, by default one that plays every role. It returns the file of the
// public half and its key ID. Errors: CodeConflict if there is one of that name.
func (l Location) NewKey(role registry.Role) (path, id string, err error) {
	name := cmp.Or(string(role), signer.LocalKey)
	if err := free(filepath.Join(l.KeyDir(), name+kms.Extension)); err != nil {
		return "", "", err
	}
	public, err := keyfile.Generate(l.KeyDir(), name, l.password())
	if err != nil {
		return "", "", err
	}
	id, err = signer.KeyID(public)
	return filepath.Join(l.KeyDir(), name+".pub"), id, err
}

// UseKey makes the key with the URI that of a role, by default of every role. The folder of keys gets a
// file with the URI, and one with the public key. It returns the latter and the key ID. Errors: CodeConflict if
// there is a key of that name; those of [kms.OpenURI].
func (l Location) UseKey(ctx context.Context, role registry.Role, uri string) (path, id string, err error) {
	base := filepath.Join(l.KeyDir(), cmp.Or(string(role), signer.LocalKey))
	for _, extension := range []string{".key", ".pub", kms.Extension} {
		if err := free(base + extension); err != nil {
			return "", "", err
		}
	}
	s, err := kms.OpenURI(ctx, uri)
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(l.KeyDir(), 0o700); err != nil {
		return "", "", registry.Lastingf(registry.CodeUnavailable, "make folder for keys: %w", err)
	}
	if err := atomicfile.Create(base+".pub", s.PublicKeyPEM(), 0o644); err != nil {
		return "", "", notWritten(base+".pub", err)
	}
	if err := atomicfile.Create(base+kms.Extension, []byte(uri+"\n"), 0o600); err != nil {
		return "", "", notWritten(base+kms.Extension, errors.Join(err, os.Remove(base+".pub")))
	}
	return base + ".pub", s.KeyID(), nil
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
