package registry

import (
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	// MaxRestrictions is the maximum number of restrictions in a list.
	MaxRestrictions = 256
	// MaxRestrictionBundle is the maximum size in bytes of a signed list.
	MaxRestrictionBundle = 1 << 20
	// maxCounter is the largest number that every JSON reader reads exactly.
	maxCounter = 1<<53 - 1
)

// RestrictionList is the predicate https://mlpromote.dev/restrictions/v1: all restrictions of an
// environment. A change is a new list, which names the one before; a lift is a list without the
// restriction.
type RestrictionList struct {
	// ResourceURI is that of the environment, "oci://local/prod/". The list counts for no other.
	ResourceURI string `json:"resourceUri"`
	Counter     int64  `json:"counter"` // 1 for the first list, and one more for each later one
	// Previous is the digest of the bundle with the list before; empty for the first.
	Previous Digest        `json:"previous,omitempty"`
	IssuedOn time.Time     `json:"issuedOn"`
	Reason   string        `json:"reason"` // of this change
	Entries  []Restriction `json:"entries"`
}

// EnvironmentURI returns the URI that trust entries and restriction lists use for a whole
// environment. A trust entry covers it if it covers every model there.
func (es Environments) EnvironmentURI(environment string) string {
	return resourceScheme + es.Registry + "/" + environment + "/"
}

// NewRestrictionList returns a statement, ready to sign. Its subject is the environment, by the
// SHA-256 of its URI. Errors: CodeInvalid for a list that [RestrictionList.Validate] refuses.
func NewRestrictionList(l RestrictionList) ([]byte, error) {
	l.IssuedOn = l.IssuedOn.UTC()
	if l.Entries == nil {
		l.Entries = []Restriction{}
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	about := StatementSubject{Name: l.ResourceURI, Digest: NewDigestSet(digest.FromString(l.ResourceURI))}
	return NewStatement(PredicateRestrictions, l, about)
}

// Validate checks the form of a list. Errors: CodeInvalid.
func (l RestrictionList) Validate() error {
	switch {
	case l.Counter < 1 || l.Counter > maxCounter:
		return Errorf(CodeInvalid, "restriction list: counter %d: want 1 to %d", l.Counter, int64(maxCounter))
	case (l.Counter == 1) != (l.Previous == ""):
		return Errorf(CodeInvalid, "restriction list %d: want the digest of the list before, except in the first", l.Counter)
	case l.IssuedOn.IsZero():
		return Errorf(CodeInvalid, "restriction list %d: the time is missing", l.Counter)
	case l.Reason == "":
		return Errorf(CodeInvalid, "restriction list %d: want a reason, which stays in the list", l.Counter)
	case len(l.Entries) > MaxRestrictions:
		return Errorf(CodeInvalid,
			"restriction list %d: %d restrictions: want at most %d; quarantine single releases, or lift what no release has any more",
			l.Counter, len(l.Entries), MaxRestrictions)
	}
	if l.Previous != "" {
		if err := l.Previous.Validate(); err != nil {
			return Errorf(CodeInvalid, "restriction list %d: digest %.200q of the list before: %w", l.Counter, l.Previous, err)
		}
	}
	if err := ValidateText("restriction list: the resource", l.ResourceURI); err != nil {
		return err
	}
	if err := ValidateText("restriction list: the reason", l.Reason); err != nil {
		return err
	}
	for i, r := range l.Entries {
		if err := r.Validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(l.Entries[:i], r.same) {
			return Errorf(CodeInvalid, "restriction list %d: %s is in it twice", l.Counter, r)
		}
	}
	return nil
}

// same reports whether both restrictions are about the same thing.
func (r Restriction) same(other Restriction) bool { return r.String() == other.String() }

// Equal reports whether both restrictions are equal in every field.
func (r Restriction) Equal(other Restriction) bool {
	return r.same(other) && r.Reason == other.Reason && r.By == other.By && r.IssuedOn.Equal(other.IssuedOn)
}

// RestrictionList reads the list in a claim of an approver about a whole environment. resource is
// the URI of the environment, for which the signature was verified. Errors: CodeTrust if the claim
// is no list, is for another environment, or its signer is not trusted as approver there.
func (c Claim) RestrictionList(resource string) (RestrictionList, error) {
	var l RestrictionList
	switch {
	case c.Statement.PredicateType != PredicateRestrictions:
		return l, Errorf(CodeTrust, "restriction list: predicate type %.200q, want %q", c.Statement.PredicateType, PredicateRestrictions)
	case !c.SignedAs(RoleApprover):
		return l, Errorf(CodeTrust,
			"restriction list: key %s is not trusted as %s for all of %s (environments.yaml, trust:)", c.Signer, RoleApprover, resource)
	case !c.Statement.About(digest.FromString(resource)):
		return l, Errorf(CodeTrust, "restriction list: it is not about %s", resource)
	}
	if err := DecodeSigned(c.Statement.Predicate, &l); err != nil {
		return RestrictionList{}, Errorf(CodeTrust, "restriction list: %w", err)
	}
	if err := l.Validate(); err != nil {
		return RestrictionList{}, Errorf(CodeTrust, "%w", err)
	}
	if l.ResourceURI != resource {
		return RestrictionList{}, Errorf(CodeTrust, "restriction list: it is for %s, not for %s", l.ResourceURI, resource)
	}
	return l, nil
}

// PeekRestrictionList returns what a signed list says, without verifying its signature. Errors: CodeTrust.
func PeekRestrictionList(bundle []byte) (RestrictionList, error) {
	var l RestrictionList
	err := peek(bundle, MaxRestrictionBundle, PredicateRestrictions, &l)
	if err == nil {
		err = l.Validate()
	}
	if err != nil {
		return RestrictionList{}, Errorf(CodeTrust, "restriction list: %w", err)
	}
	return l, nil
}
