package registry

import (
	"errors"
	"io/fs"
	"time"
)

// SignedTrust is the newest trust bundle of a registry.
type SignedTrust struct {
	Digest     Digest      `json:"digest"` // of Bundle
	Trust      TrustBundle `json:"trust"`
	Signer     string      `json:"signer"` // key identifier
	RecordedAt time.Time   `json:"recordedAt"`
	Bundle     []byte      `json:"bundle"` // the sigstore bundle
}

// Accepted is what followers remember of it.
func (s SignedTrust) Accepted() AcceptedTrust { return AcceptedTrust{s.Trust, s.Digest} }

// DraftTrustBundle returns a bundle with what environments.yaml says, and the files that it names.
// load reads such a file. An entry whose key is missing is left out: it gives no trust. Version, times,
// restriction lists and checkpoint are not set. Errors: CodeInvalid if the files were not read as one
// configuration; those of load.
func DraftTrustBundle(es Environments, load func(path string) ([]byte, error)) (TrustBundle, error) {
	b := TrustBundle{Registry: es.Registry, Environments: es.Configuration}
	if es.Configuration == "" {
		return b, Errorf(CodeInvalid, "trust bundle: the keys of environments.yaml were not read")
	}
	for _, e := range es.Trust {
		bundled := BundledTrust{Entry: e}
		if e.Key != "" {
			data, err := load(e.Key)
			if errors.Is(err, fs.ErrNotExist) && e.EffectiveState() == KeyTrusted {
				continue
			}
			if err != nil {
				return b, Errorf(CodeUnavailable, "trust bundle: key %s: %w", e.Key, err)
			}
			bundled.PEM = string(data)
		}
		b.Trust = append(b.Trust, bundled)
	}
	for _, r := range es.Roots {
		data, err := load(r.Path())
		if err != nil {
			return b, Errorf(CodeUnavailable, "trust bundle: root %s: %w", r.Path(), err)
		}
		b.Roots = append(b.Roots, BundledRoot{Root: r, Content: string(data)})
	}
	return b, nil
}

// WithRestrictions returns the bundle with the restriction lists in force, one for each environment.
func (b TrustBundle) WithRestrictions(lists []SignedRestrictions) TrustBundle {
	b.Restrictions = make([]BundledRestrictions, 0, len(lists))
	for _, l := range lists {
		b.Restrictions = append(b.Restrictions, BundledRestrictions{Environment: l.Environment,
			Counter: l.List.Counter, Digest: l.Digest, Bundle: l.Bundle})
	}
	return b
}

// Differs names the parts that are not as in other: "environments", "trust", "roots" and
// "restrictions". It does not compare version, times and checkpoint.
func (b TrustBundle) Differs(other TrustBundle) ([]string, error) {
	var names []string
	if b.Registry != other.Registry || b.Environments != other.Environments {
		names = append(names, "environments")
	}
	for _, part := range []struct {
		name      string
		ours, its any
	}{
		{"trust", append([]BundledTrust{}, b.Trust...), append([]BundledTrust{}, other.Trust...)},
		{"roots", append([]BundledRoot{}, b.Roots...), append([]BundledRoot{}, other.Roots...)},
		{"restrictions", append([]BundledRestrictions{}, b.Restrictions...), append([]BundledRestrictions{}, other.Restrictions...)},
	} {
		ours, err := CanonicalDigest(part.ours)
		if err != nil {
			return nil, err
		}
		its, err := CanonicalDigest(part.its)
		if err != nil {
			return nil, err
		}
		if ours != its {
			names = append(names, part.name)
		}
	}
	return names, nil
}

// PeekTrustBundle returns what a signed bundle says, without verifying its signature. Errors: CodeTrust.
func PeekTrustBundle(bundle []byte) (TrustBundle, error) {
	var b TrustBundle
	err := peek(bundle, MaxTrustBundle, PredicateTrustBundle, &b)
	if err == nil {
		err = b.Validate()
	}
	if err != nil {
		return TrustBundle{}, Errorf(CodeTrust, "trust bundle: %w", err)
	}
	return b, nil
}
