package trust

import (
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// PredicateTrustBundle is the predicate type of a [TrustBundle]. Its statement is about a registry
// and attached to nothing.
const PredicateTrustBundle = "https://mlpromote.dev/trust-bundle/v1"

const (
	// MaxTrustBundle is the maximum size in bytes of a signed trust bundle.
	MaxTrustBundle = 4 << 20
	// MaxTrustLife is the longest time from the issue of a trust bundle to its end.
	MaxTrustLife = 366 * 24 * time.Hour
	// maxBundledTrust is the maximum number of trust entries in a bundle.
	maxBundledTrust = 1000
)

// TrustBundle is the predicate https://mlpromote.dev/trust-bundle/v1: everything by which a machine
// judges what a registry hands out. All parts are in one signed statement, so that parts of two
// versions cannot be mixed.
type TrustBundle struct {
	Registry string `json:"registry"` // a name; the bundle counts for no other
	Version  int64  `json:"version"`  // 1 for the first bundle, and one more for each later one
	// Previous is the digest of the bundle before; empty for the first.
	Previous  registry.Digest `json:"previous,omitempty"`
	IssuedOn  time.Time       `json:"issuedOn"`
	ExpiresOn time.Time       `json:"expiresOn"` // from then on, no new engine is accepted by it
	// Environments is the digest of environments.yaml and the files that it names, as in [history.Configuration].
	Environments registry.Digest `json:"environments"`
	Trust        []BundledTrust  `json:"trust"`
	Roots        []BundledRoot   `json:"roots,omitempty"`
	// Restrictions has one element for every environment, also for those without a list.
	Restrictions []BundledRestrictions `json:"restrictions"`
	// Checkpoint is a signed checkpoint of the history. The zero value: there is none.
	Checkpoint KeptCheckpoint `json:"checkpoint,omitzero"`
}

// BundledTrust is a trust entry with the public key that it names.
type BundledTrust struct {
	Entry TrustEntry `json:"entry"`
	PEM   string     `json:"pem,omitempty"` // of the key; empty for an identity
}

// BundledRoot is a root with the content of its file.
type BundledRoot struct {
	Root    Root   `json:"root"`
	Content string `json:"content"`
}

// BundledRestrictions is the restriction list of an environment. Without a list only Environment is
// set.
type BundledRestrictions struct {
	Environment string          `json:"environment"`
	Counter     int64           `json:"counter"`
	Digest      registry.Digest `json:"digest,omitempty"` // of Bundle
	Bundle      []byte          `json:"bundle,omitempty"` // the signed list
}

// RegistryURI returns the resource for which a key must be trusted to speak about a whole registry.
func RegistryURI(name string) string { return registry.ResourceScheme + name + "/" }

// NewTrustBundle returns a statement, ready to sign. Its subject is the registry, by the digest of
// its environments. Errors: CodeInvalid for a bundle that [TrustBundle.Validate] refuses.
func NewTrustBundle(b TrustBundle) ([]byte, error) {
	b.IssuedOn, b.ExpiresOn = b.IssuedOn.UTC(), b.ExpiresOn.UTC()
	if err := b.Validate(); err != nil {
		return nil, err
	}
	about := evidence.StatementSubject{Name: RegistryURI(b.Registry), Digest: evidence.NewDigestSet(b.Environments)}
	return evidence.NewStatement(PredicateTrustBundle, b, about)
}

// Validate checks the form of a bundle. Errors: CodeInvalid.
func (b TrustBundle) Validate() error {
	if err := registry.ValidateRegistry(b.Registry); err != nil {
		return b.invalid("%w", err)
	}
	if err := b.validateHead(); err != nil {
		return err
	}
	if err := b.validateTrust(); err != nil {
		return err
	}
	for i, r := range b.Roots {
		if (r.Root.Sigstore == "") == (r.Root.Timestamps == "") || r.Content == "" {
			return b.invalid("root %d: want one path, and the content of its file", i+1)
		}
	}
	for i, l := range b.Restrictions {
		if err := l.validate(); err != nil {
			return b.invalid("%w", err)
		}
		if slices.ContainsFunc(b.Restrictions[:i], func(o BundledRestrictions) bool { return o.Environment == l.Environment }) {
			return b.invalid("environment %s is in it twice", l.Environment)
		}
	}
	if c := b.Checkpoint; c.Size < 0 || c.Size > evidence.MaxCounter || (c.Size == 0) != (c.Note == "") {
		return b.invalid("checkpoint of %d events: want its note, and none without events", c.Size)
	}
	return nil
}

func (b TrustBundle) invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "trust bundle %d: %w", b.Version, registry.Errorf(registry.CodeInvalid, format, args...))
}

// validateHead checks version, times and digests.
func (b TrustBundle) validateHead() error {
	switch {
	case b.Version < 1 || b.Version > evidence.MaxCounter:
		return b.invalid("version: want 1 to %d", int64(evidence.MaxCounter))
	case (b.Version == 1) != (b.Previous == ""):
		return b.invalid("want the digest of the bundle before, except in the first")
	case b.IssuedOn.IsZero() || !b.ExpiresOn.After(b.IssuedOn):
		return b.invalid("it is issued on %s and expires on %s: want a later time", registry.UTC(b.IssuedOn), registry.UTC(b.ExpiresOn))
	case b.ExpiresOn.Sub(b.IssuedOn) > MaxTrustLife:
		return b.invalid("it is for %s: want at most %s", b.ExpiresOn.Sub(b.IssuedOn), MaxTrustLife)
	}
	if err := b.Environments.Validate(); err != nil {
		return b.invalid("digest %.200q of the environments: %w", b.Environments, err)
	}
	if b.Previous != "" {
		if err := b.Previous.Validate(); err != nil {
			return b.invalid("digest %.200q of the bundle before: %w", b.Previous, err)
		}
	}
	return nil
}

// validateTrust checks that entries have their keys, that a path means one key, and that publishers
// have no other role.
func (b TrustBundle) validateTrust() error {
	if len(b.Trust) == 0 || len(b.Trust) > maxBundledTrust {
		return b.invalid("%d trust entries: want 1 to %d", len(b.Trust), maxBundledTrust)
	}
	pem := make(map[string]string)
	var entries []TrustEntry // of keys
	for i, t := range b.Trust {
		publishes := t.Entry.publishes()
		switch {
		case (t.Entry.Key == "") != (t.PEM == "") || (t.Entry.Key == "") == (t.Entry.Identity == nil):
			return b.invalid("trust entry %d: want a key with its PEM, or an identity", i+1)
		case len(t.Entry.Roles) == 0 || len(t.Entry.Resources) == 0:
			return b.invalid("trust entry %d: want roles and resources", i+1)
		case publishes && (len(t.Entry.Roles) > 1 || t.Entry.Identity != nil):
			return b.invalid("trust entry %d: a %s is a key without another role", i+1, evidence.RolePublisher)
		case t.Entry.Key == "":
			continue
		}
		if before, again := pem[t.Entry.Key]; again && before != t.PEM {
			return b.invalid("trust entry %d: %q is two keys", i+1, t.Entry.Key)
		}
		pem[t.Entry.Key] = t.PEM
		entries = append(entries, t.Entry)
	}
	return CheckPublishersAlone(entries, func(e TrustEntry) string { return keyBytes(pem[e.Key]) })
}

func (l BundledRestrictions) validate() error {
	if !registry.NamePattern.MatchString(l.Environment) {
		return registry.Errorf(registry.CodeInvalid, "restriction list of environment %.200q: want a lower-case name", l.Environment)
	}
	if l.Counter == 0 && l.Digest == "" && len(l.Bundle) == 0 {
		return nil
	}
	if l.Counter < 1 || l.Counter > evidence.MaxCounter || len(l.Bundle) > evidence.MaxRestrictionBundle || l.Digest != digest.FromBytes(l.Bundle) {
		return registry.Errorf(registry.CodeInvalid, "restriction list of %s: counter %d: want its signed bundle, and the digest of that", l.Environment, l.Counter)
	}
	return nil
}

// BundleOf reads the trust bundle in a claim of a publisher of the registry with the name.
// The signature must be verified for its [RegistryURI]. Errors: CodeTrust if the claim is no trust
// bundle, is of another registry, or its signer is not trusted as publisher there, and as nothing else.
func BundleOf(c evidence.Claim, name string) (TrustBundle, error) {
	var b TrustBundle
	switch {
	case c.Statement.PredicateType != PredicateTrustBundle:
		return b, registry.Errorf(registry.CodeTrust, "trust bundle: predicate type %.200q, want %q", c.Statement.PredicateType, PredicateTrustBundle)
	case !c.SignedAs(evidence.RolePublisher):
		return b, registry.Errorf(registry.CodeTrust, "trust bundle: key %s is not trusted as %s for %s", c.Signer, evidence.RolePublisher, RegistryURI(name))
	case slices.ContainsFunc(c.Roles, func(r evidence.Role) bool { return r != evidence.RolePublisher }):
		return b, registry.Errorf(registry.CodeTrust, "trust bundle: key %s has other roles than %s: want a key of its own", c.Signer, evidence.RolePublisher)
	case c.Key != evidence.KeyTrusted:
		return b, registry.Errorf(registry.CodeTrust, "trust bundle: key %s is %s, so it publishes nothing new", c.Signer, c.Key)
	}
	if err := registry.DecodeSigned(c.Statement.Predicate, &b); err != nil {
		return TrustBundle{}, registry.Errorf(registry.CodeTrust, "trust bundle: %w", err)
	}
	if err := b.Validate(); err != nil {
		return TrustBundle{}, registry.Errorf(registry.CodeTrust, "%w", err)
	}
	// A thief could claim an earlier time, but not a bundle that lives on after the window.
	if until := c.Window.Until; !c.Window.Contains(b.IssuedOn) || !until.IsZero() && b.ExpiresOn.After(until) {
		return TrustBundle{}, registry.Errorf(registry.CodeTrust, "trust bundle %d: it is from %s to %s, and key %s, which signed it, counts %s",
			b.Version, registry.UTC(b.IssuedOn), registry.UTC(b.ExpiresOn), c.Signer, c.Window)
	}
	if b.Registry != name || !c.Statement.About(b.Environments) {
		return TrustBundle{}, registry.Errorf(registry.CodeTrust, "trust bundle %d: it is of the registry %s, want %s", b.Version, b.Registry, name)
	}
	return b, nil
}
