package connect

import (
	"context"
	"os"

	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/follow"
)

// Trust is where this machine says whom it trusts: a trust file, or else environments.yaml in a folder.
type Trust struct {
	File         string // empty: environments.yaml
	PolicyFolder string // has environments.yaml
	Now          storage.Clock

	accepted *follow.Accepted // of a file that follows a registry, once a bundle was accepted
}

// VerifyNote gives what verifies signed notes.
func (t Trust) VerifyNote() (trust.VerifyNote, error) {
	trust, err := t.open()
	if err != nil {
		return nil, err
	}
	return trust.VerifyNote, nil
}

// Verify verifies signatures by the keys that are trusted.
func (t Trust) Verify() (storage.VerifyEvidence, error) {
	trust, err := t.open()
	if err != nil {
		return nil, err
	}
	return trust.Verify, nil
}

// open gives what verifies by the keys that are trusted.
func (t Trust) open() (*signer.Trust, error) {
	t, err := t.Recall(context.Background()) // files of this machine
	if err != nil {
		return nil, err
	}
	if t.accepted != nil {
		return t.accepted.Trust, nil
	}
	entries, roots, dir, err := t.entries()
	if err != nil {
		return nil, err
	}
	trust, err := signer.NewTrust(entries, func(path string) ([]byte, error) {
		return os.ReadFile(environments.KeyPath(dir, path))
	})
	if err != nil {
		return nil, err
	}
	return trust.WithRoots(roots), nil
}

// entries are those of the file, with its roots and the folder that paths of keys start from.
func (t Trust) entries() ([]trust.TrustEntry, []trust.Root, string, error) {
	if t.File != "" {
		trust, err := environments.LoadTrust(t.File)
		return trust.Entries, trust.Roots, trust.Dir, err
	}
	envs, err := environments.Load(t.PolicyFolder)
	return envs.Trust, envs.Roots, t.PolicyFolder, err
}

// RegistryName is what the file calls the registry.
func (t Trust) RegistryName() (string, error) {
	if t.File != "" {
		trust, err := environments.LoadTrust(t.File)
		return trust.Registry, err
	}
	envs, err := environments.Load(t.PolicyFolder)
	return envs.Registry, err
}

// Unprotected reports whether builds write to an environment, as far as this machine knows: whatever the
// registry says. A trust file knows no environments.
func (t Trust) Unprotected(environment string) (bool, error) {
	if t.File != "" {
		return false, nil
	}
	envs, err := environments.Load(t.PolicyFolder)
	return envs.Unprotected(environment), err
}
