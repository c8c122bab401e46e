package trust

import (
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// AcceptedTrust is a trust bundle that was accepted, with the digest of its signed bundle.
type AcceptedTrust struct {
	TrustBundle
	Digest registry.Digest
}

// CheckFollows checks that a machine that has accepted before may accept b. The zero before is the
// first contact. Errors: CodeTrust for an older version, another bundle of the same version, and one
// that takes back something that before has.
func (b AcceptedTrust) CheckFollows(before AcceptedTrust) error {
	switch {
	case before.Version == 0 || b.Digest == before.Digest && b.Digest != "":
		return nil
	case b.Registry != before.Registry:
		return b.refused("it is of the registry %s, and this machine follows %s", b.Registry, before.Registry)
	case b.Version < before.Version:
		return b.refused("this machine has accepted version %d already, and an older one is offered", before.Version)
	case b.Version == before.Version:
		return b.refused("this machine has accepted another bundle of that version, %s: the registry signed two, or its history was replaced",
			before.Digest)
	case b.Version == before.Version+1 && b.Previous != before.Digest:
		return b.refused("the bundle before it is %s, and this machine has accepted %s: the registry signed two, or its history was replaced",
			b.Previous, before.Digest)
	case b.IssuedOn.Before(before.IssuedOn):
		return b.refused("it was issued on %s, before version %d: %s", registry.UTC(b.IssuedOn), before.Version, registry.UTC(before.IssuedOn))
	case b.Checkpoint.Size < before.Checkpoint.Size:
		return b.refused("its checkpoint has %d events, and that of version %d had %d: the end of the history is gone",
			b.Checkpoint.Size, before.Version, before.Checkpoint.Size)
	}
	for _, l := range b.Restrictions {
		if seen := before.RestrictionsOf(l.Environment); l.Counter < seen.Counter || l.Counter == seen.Counter && l.Digest != seen.Digest {
			return b.refused("restriction list %d of %s: version %d of the bundle had list %d, %s",
				l.Counter, l.Environment, before.Version, seen.Counter, seen.Digest)
		}
	}
	return nil
}

func (b AcceptedTrust) refused(format string, args ...any) error {
	return registry.WithHint(registry.Errorf(registry.CodeTrust, "trust bundle %d of %s: %w", b.Version, b.Registry, registry.Errorf(registry.CodeTrust, format, args...)),
		"look at the registry before anything else; if it was restored on purpose, remove the state folder of follow: here, "+
			"which makes this a first contact again")
}

// CheckNext checks that the registry may publish b after before, which is the zero value for the first
// bundle. Errors: CodeConflict for another version or bundle before; those of CheckFollows.
func (b AcceptedTrust) CheckNext(before AcceptedTrust) error {
	if b.Version != before.Version+1 || b.Previous != before.Digest {
		return registry.WithHint(registry.Errorf(registry.CodeConflict, "trust bundle %d, after %q: the newest is %d, %q", b.Version, b.Previous, before.Version, before.Digest),
			"publish again, which follows the newest")
	}
	return b.CheckFollows(before)
}

// CheckCurrent checks that new engines may be accepted by the bundle at a time. Errors: CodeTrust if it
// has expired, or is of the future, which no clock that is right reads.
func (b TrustBundle) CheckCurrent(now time.Time) error {
	switch {
	case registry.ClaimsFuture(b.IssuedOn, now):
		return registry.WithHint(registry.Errorf(registry.CodeTrust, "trust bundle %d of %s: it was issued on %s, and here it is %s",
			b.Version, b.Registry, registry.UTC(b.IssuedOn), registry.UTC(now)),
			"set the clock of this machine, or of the publisher")
	case !now.Before(b.ExpiresOn):
		return registry.WithHint(registry.Errorf(registry.CodeTrust, "trust bundle %d of %s: it expired on %s, and here it is %s: nothing new is accepted by it",
			b.Version, b.Registry, registry.UTC(b.ExpiresOn), registry.UTC(now)),
			"have the registry publish the next one: mlpromote trust publish; if it did, this machine does not get it, or its clock is wrong. "+
				"Engines that run are not affected")
	}
	return nil
}

// CheckPublisher decides who may sign a trust bundle that a machine accepts. own is what the bundle
// says of its signer, before what the last accepted bundle says, and pinned what the files of this
// machine say; nil where the signature does not verify by them. The signer must be a trusted publisher
// by the bundle itself, and by the last accepted bundle or the files. A key that the last accepted
// bundle calls retired or revoked never counts. Errors: CodeTrust.
func CheckPublisher(own, before, pinned *evidence.Claim) error {
	publishes := func(c *evidence.Claim) bool {
		return c != nil && c.Key == evidence.KeyTrusted && slices.Equal(c.Roles, []evidence.Role{evidence.RolePublisher})
	}
	switch {
	case before != nil && before.Key != evidence.KeyTrusted:
		return registry.Errorf(registry.CodeTrust, "trust bundle: key %s, which signed it, is %s since an earlier bundle", before.Signer, before.Key)
	case !publishes(before) && !publishes(pinned):
		return registry.WithHint(registry.Errorf(registry.CodeTrust,
			"trust bundle: no publisher that this machine knows signed it: neither one of follow: publishers, nor one of the last bundle"),
			"ask over another way for the public key of the publisher, and name it under follow: publishers")
	case !publishes(own):
		return registry.Errorf(registry.CodeTrust,
			"trust bundle: it does not list the key that signed it as %s; after a key was retired or revoked, publish with another publisher's key",
			evidence.RolePublisher)
	}
	return nil
}

// RestrictionsOf returns the restriction list of an environment, or one of counter 0.
func (b TrustBundle) RestrictionsOf(environment string) BundledRestrictions {
	for _, l := range b.Restrictions {
		if l.Environment == environment {
			return l
		}
	}
	return BundledRestrictions{Environment: environment}
}

// CheckRestrictions refuses the restriction list that a registry hands out if it is older than that of
// the bundle. Errors: CodeTrust.
func (b TrustBundle) CheckRestrictions(got restriction.SignedRestrictions) error {
	known := b.RestrictionsOf(got.Environment)
	if got.List.Counter < known.Counter || got.List.Counter == known.Counter && got.Digest != known.Digest {
		return registry.Errorf(registry.CodeTrust, "restriction list %d of %s, %q: trust bundle %d has list %d, %s: the registry hands out an older one",
			got.List.Counter, got.Environment, got.Digest, b.Version, known.Counter, known.Digest)
	}
	return nil
}
