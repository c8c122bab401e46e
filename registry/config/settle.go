package config

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Settle makes the environments of a command the agreed ones. It is for catalogs whose
// processes all read the same files, so the files read last are right. read reads them again,
// so that a command that began before a change does not restore the old environments. Errors:
// CodeConflict if the files changed since own was read; CodeInvalid if environments.yaml is
// gone; those of the catalog.
func Settle(ctx context.Context, catalog Catalog, own Snapshot, read func() (Snapshot, error), now time.Time) error {
	want := history.Configuration{Environments: own.Configuration.Environments}
	agreed, err := catalog.Agreed(ctx, want)
	if err != nil || len(want.Differs(agreed)) == 0 {
		return err
	}
	if err := own.standsIn(agreed); err != nil {
		return err
	}
	found, err := read()
	if err != nil {
		return err
	}
	if len(want.Differs(found.Configuration)) > 0 {
		return registry.Errorf(registry.CodeConflict,
			"environments.yaml, or a public key that it names, changed while this ran: run it again")
	}
	change, err := storage.Adopt(agreed, want, "environments.yaml, or a public key that it names, changed", now)
	if err != nil {
		return err
	}
	_, err = catalog.Apply(ctx, change)
	return err
}

// CheckPresent refuses the embedded default if environments.yaml is gone: the default may
// trust a key that the file had revoked. Errors: CodeInvalid; those of agreed.
func CheckPresent(ctx context.Context, own Snapshot, agreed func(context.Context) (history.Configuration, error)) error {
	if !own.isDefault {
		return nil
	}
	was, err := agreed(ctx)
	if err != nil {
		return err
	}
	return own.standsIn(was)
}

// standsIn refuses the embedded default if other environments were agreed on. The default is
// also accepted if it was agreed on before its key existed: the first build creates that key.
func (s Snapshot) standsIn(agreed history.Configuration) error {
	if !s.isDefault || agreed.Environments == "" || agreed.Environments == s.Configuration.Environments {
		return nil
	}
	without := s
	without.keys = nil
	if d, err := without.environmentsDigest(); err != nil || agreed.Environments == d {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid,
			"%s is gone, or the key of the default was replaced: the agreed configuration of this catalog is not the default", environments.File),
		"put the file back; if the files here are right: mlpromote configuration adopt")
}
