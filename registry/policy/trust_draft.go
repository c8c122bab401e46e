package policy

import (
	"errors"
	"io/fs"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// DraftTrustBundle returns a bundle with what environments.yaml says, and the files that it names.
// load reads such a file. An entry whose key is missing is left out: it gives no trust. Version, times,
// restriction lists and checkpoint are not set. Errors: CodeInvalid if the files were not read as one
// configuration; those of load.
func DraftTrustBundle(es Environments, load func(path string) ([]byte, error)) (trust.TrustBundle, error) {
	b := trust.TrustBundle{Registry: es.Registry, Environments: es.Configuration}
	if es.Configuration == "" {
		return b, registry.Errorf(registry.CodeInvalid, "trust bundle: the keys of environments.yaml were not read")
	}
	for _, e := range es.Trust {
		bundled := trust.BundledTrust{Entry: e}
		if e.Key != "" {
			data, err := load(e.Key)
			if errors.Is(err, fs.ErrNotExist) && e.EffectiveState() == evidence.KeyTrusted {
				continue
			}
			if err != nil {
				return b, registry.Errorf(registry.CodeUnavailable, "trust bundle: key %s: %w", e.Key, err)
			}
			bundled.PEM = string(data)
		}
		b.Trust = append(b.Trust, bundled)
	}
	for _, r := range es.Roots {
		data, err := load(r.Path())
		if err != nil {
			return b, registry.Errorf(registry.CodeUnavailable, "trust bundle: root %s: %w", r.Path(), err)
		}
		b.Roots = append(b.Roots, trust.BundledRoot{Root: r, Content: string(data)})
	}
	return b, nil
}
