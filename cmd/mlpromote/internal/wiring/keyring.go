package wiring

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/keys"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/predicates"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// KeyFolder is the folder of signing keys, with the roots of environments.yaml for what signs with them.
func (l Location) KeyFolder() keys.Folder {
	return keys.Folder{Dir: l.KeyDir(), Getenv: l.Getenv, Now: clock.Now, Roots: func() ([]trust.Root, func(string) ([]byte, error), error) {
		own, err := l.Files().Read()
		return own.Environments.Roots, own.Key, err
	}}
}

// Keyring signs with the keys in the folder of keys, which it opens when it first needs them.
func (l Location) Keyring() *signer.Keyring {
	return &signer.Keyring{Dir: l.KeyDir(), Open: func(ctx context.Context, path string) (signer.Signer, error) {
		s, err := l.KeyFolder().Open(ctx, path)
		return checkedSigner{s}, err
	}}
}

// checkedSigner signs nothing but predicates that fit their schemas.
type checkedSigner struct{ signer.Signer }

// Sign holds a statement against the schema of its predicate, and signs it. Errors: CodeInvalid if it does not fit.
func (s checkedSigner) Sign(ctx context.Context, statement []byte) ([]byte, error) {
	if err := predicates.CheckText(statement); err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "sign: %w", err)
	}
	return s.Signer.Sign(ctx, statement)
}

// signServed is a keyring of a service: that it does not sign is no mistake of whoever
// asked for something, and where its keys are is not told.
func signServed(keys *signer.Keyring) storage.SignEvidence {
	return func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
		bundle, err := keys.Sign(ctx, role, statement)
		if err == nil || ctx.Err() != nil {
			return bundle, err
		}
		return nil, notSigned(role, err)
	}
}

func notSigned(role evidence.Role, err error) error {
	return registry.ForClients(
		registry.Lastingf(registry.CodeUnavailable, "%s", err.Error()),
		"the service cannot sign as %s: its operator finds the reason in its log", role)
}
