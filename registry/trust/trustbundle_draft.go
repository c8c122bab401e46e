package trust

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// SignedTrust is the newest trust bundle of a registry.
type SignedTrust struct {
	Digest     registry.Digest `json:"digest"` // of Bundle
	Trust      TrustBundle     `json:"trust"`
	Signer     string          `json:"signer"` // key identifier
	RecordedAt time.Time       `json:"recordedAt"`
	Bundle     []byte          `json:"bundle"` // the sigstore bundle
}

// Accepted is what followers remember of it.
func (s SignedTrust) Accepted() AcceptedTrust { return AcceptedTrust{s.Trust, s.Digest} }

// WithRestrictions returns the bundle with the restriction lists in force, one for each environment.
func (b TrustBundle) WithRestrictions(lists []restriction.SignedRestrictions) TrustBundle {
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
		ours, err := registry.CanonicalDigest(part.ours)
		if err != nil {
			return nil, err
		}
		its, err := registry.CanonicalDigest(part.its)
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
	err := evidence.Peek(bundle, MaxTrustBundle, PredicateTrustBundle, &b)
	if err == nil {
		err = b.Validate()
	}
	if err != nil {
		return TrustBundle{}, registry.Errorf(registry.CodeTrust, "trust bundle: %w", err)
	}
	return b, nil
}
