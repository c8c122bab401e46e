package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/signer"
)

// policyFolder has environments.yaml and access.yaml.
func (a *app) policyFolder() string {
	if a.policyDir != "" {
		return a.policyDir
	}
	return a.data
}

// files is the configuration of a verb.
func (a *app) files() config.Files { return config.Files{Dir: a.policyFolder()} }

// signedFiles is the configuration of a service: that of a verb, with the key that signs
// promotions. Errors: CodeUnavailable where there is no such key; CodeInvalid where it
// cannot be opened. The files can be used all the same.
func (a *app) signedFiles(ctx context.Context, keys *signer.Keyring) (config.Files, error) {
	f := a.files()
	f.KeyID = signer.KeyID
	s, err := keys.Signer(ctx, registry.RolePromoter)
	if err == nil {
		f.Promoter, f.PromoterFile = digest.NewDigestFromEncoded(digest.SHA256, s.KeyID()), a.promoterFile(s)
	}
	return f, err
}

// promoterFile is where the public key of the promoter is, as environments.yaml would name
// it; empty where no file beside the private key has it.
func (a *app) promoterFile(s signer.Signer) string {
	for _, name := range []string{string(registry.RolePromoter), signer.LocalKey} {
		path := filepath.Join(a.keyDir(), name+".pub")
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if id, err := signer.KeyID(data); err != nil || id != s.KeyID() {
			continue
		}
		if below, err := filepath.Rel(a.policyFolder(), path); err == nil && filepath.IsLocal(below) {
			return filepath.ToSlash(below)
		}
		absolute, _ := filepath.Abs(path)
		return filepath.ToSlash(absolute)
	}
	return ""
}

// agreementOf says by what a verb may change and resolve. Where the catalog is in a file,
// all who use it read the same environments.yaml, so that a change of it is agreed on with
// the first verb that writes. In PostgreSQL services with files of their own may use it.
func (a *app) agreementOf(here *local, own config.Snapshot) (write, resolve func(context.Context) error) {
	if a.database == "" {
		write = func(ctx context.Context) error { return config.Settle(ctx, here.db, own, a.files().Read, now()) }
		agreed := func(ctx context.Context) (registry.Configuration, error) {
			return here.db.Agreed(ctx, registry.Configuration{})
		}
		return write, func(ctx context.Context) error { return config.CheckPresent(ctx, own, agreed) }
	}
	environments := registry.Configuration{Environments: own.Configuration.Environments}
	check := func(first registry.Configuration) func(context.Context) error {
		return func(ctx context.Context) error {
			agreed := func(ctx context.Context) (registry.Configuration, error) { return here.db.Agreed(ctx, first) }
			return config.Agreement{Own: environments, Agreed: agreed}.Check(ctx)
		}
	}
	return check(environments), check(registry.Configuration{})
}

// problems makes errors of the findings that are problems, and notes of the others.
func (a *app) problems(findings []config.Finding) []error {
	var all []error
	for _, f := range findings {
		if !f.Problem {
			a.ui.Note("%s", f.Text)
			continue
		}
		err := registry.Errorf(registry.CodeInvalid, "%s", f.Text)
		if f.Fix != "" {
			err = registry.WithHint(err, "%s", f.Fix)
		}
		all = append(all, err)
	}
	return all
}
