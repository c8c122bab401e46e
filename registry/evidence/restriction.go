package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Peek decodes the predicate of a signed bundle of at most size bytes, without verifying its signature.
func Peek(bundle []byte, size int, predicateType string, predicate any) error {
	var document struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	var s Statement
	if len(bundle) > size {
		return registry.Errorf(registry.CodeTrust, "%d bytes, want at most %d", len(bundle), size)
	}
	err := registry.DecodeSigned(bundle, &document)
	if err == nil {
		err = registry.DecodeSigned(document.Envelope.Payload, &s)
	}
	if err == nil && s.PredicateType != predicateType {
		err = registry.Errorf(registry.CodeTrust, "predicate type %.200q, want %q", s.PredicateType, predicateType)
	}
	if err == nil {
		err = registry.DecodeSigned(s.Predicate, predicate)
	}
	return err
}

// RestrictionKind says what a restriction is about.
type RestrictionKind string

// The kinds of restrictions.
const (
	RestrictSource      RestrictionKind = "source"      // a file of the model, its reference or its sources
	RestrictCalibration RestrictionKind = "calibration" // data that a quantizer read
	RestrictToolchain   RestrictionKind = "toolchain"   // versions of what imported, quantized or compiled it
	RestrictOperator    RestrictionKind = "operator"    // a library of operators that the engine carries
)

// RestrictionKinds lists all kinds.
func RestrictionKinds() []RestrictionKind {
	return []RestrictionKind{RestrictSource, RestrictCalibration, RestrictToolchain, RestrictOperator}
}

// Restriction says that engines which were made from or with something must not be promoted or used.
type Restriction struct {
	Kind RestrictionKind `json:"kind"`
	// Digest identifies a source, calibration data or an operator library. Empty for a toolchain.
	Digest registry.Digest `json:"digest,omitempty"`
	// Toolchain is the name of a toolchain, and Versions the versions of it, as [artifact.ParseVersionRange]
	// reads them. Empty for the other kinds.
	Toolchain string    `json:"toolchain,omitempty"`
	Versions  string    `json:"versions,omitempty"`
	Reason    string    `json:"reason"`
	IssuedOn  time.Time `json:"issuedOn"`
	By        string    `json:"by"` // key identifier of the approver who restricted it first
}

// ParseRestriction reads what a restriction is about: a digest, or NAME@RANGE for a toolchain. The
// result has no reason, time or approver yet. Errors: CodeInvalid.
func ParseRestriction(kind RestrictionKind, text string) (Restriction, error) {
	r := Restriction{Kind: kind, Digest: registry.Digest(text)}
	if kind == RestrictToolchain {
		name, versions, found := strings.Cut(text, "@")
		if !found {
			return Restriction{}, registry.Errorf(registry.CodeInvalid, "restriction: toolchain %.200q: want NAME@RANGE, such as onnxruntime@<1.24.0", text)
		}
		r = Restriction{Kind: kind, Toolchain: name, Versions: strings.ReplaceAll(versions, " ", "")}
	}
	return r, r.validateThing()
}

// String names what is restricted: "source sha256:...", "toolchain onnxruntime@<1.24.0". Two
// restrictions are about the same thing if their names are equal.
func (r Restriction) String() string {
	if r.Kind == RestrictToolchain {
		return fmt.Sprintf("%s %s@%s", r.Kind, r.Toolchain, r.Versions)
	}
	return fmt.Sprintf("%s %s", r.Kind, r.Digest)
}

// Validate checks the form of a restriction. Errors: CodeInvalid.
func (r Restriction) Validate() error {
	if err := r.validateThing(); err != nil {
		return err
	}
	switch {
	case r.Reason == "":
		return registry.Errorf(registry.CodeInvalid, "%s: want a reason, which stays in the list", r)
	case r.IssuedOn.IsZero():
		return registry.Errorf(registry.CodeInvalid, "%s: the time is missing", r)
	case r.By == "":
		return registry.Errorf(registry.CodeInvalid, "%s: want the key of the approver who restricted it", r)
	}
	if err := registry.ValidateText("restriction: the approver", r.By); err != nil {
		return err
	}
	return registry.ValidateText("restriction: the reason", r.Reason)
}

// validateThing checks what the restriction is about.
func (r Restriction) validateThing() error {
	if !slices.Contains(RestrictionKinds(), r.Kind) {
		return registry.Errorf(registry.CodeInvalid, "restriction: kind %.40q: want one of %v", r.Kind, RestrictionKinds())
	}
	if r.Kind != RestrictToolchain {
		if r.Toolchain != "" || r.Versions != "" {
			return registry.Errorf(registry.CodeInvalid, "restriction: a %s has a digest, and no toolchain", r.Kind)
		}
		if err := r.Digest.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "restriction: %s: digest %.200q: %w; want sha256: and 64 hex digits",
				r.Kind, r.Digest, err)
		}
		return nil
	}
	if r.Digest != "" || !validToolchain(r.Toolchain) {
		return registry.Errorf(registry.CodeInvalid, "restriction: toolchain %.200q: want NAME@RANGE, such as onnxruntime@<1.24.0", r.Toolchain)
	}
	_, err := artifact.ParseVersionRange(r.Versions)
	return err
}

// validToolchain reports whether a text can be the name of a toolchain.
func validToolchain(name string) bool {
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-", c)
	}
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, odd)
}

const (
	// MaxRestrictions is the maximum number of restrictions in a list.
	MaxRestrictions = 256
	// MaxRestrictionBundle is the maximum size in bytes of a signed list.
	MaxRestrictionBundle = 1 << 20
	// MaxCounter is the largest number that every JSON reader reads exactly.
	MaxCounter = 1<<53 - 1
)

// RestrictionList is the predicate https://mlpromote.dev/restrictions/v1: all restrictions of an
// environment. A change is a new list, which names the one before; a lift is a list without the
// restriction.
type RestrictionList struct {
	// ResourceURI is that of the environment, "oci://local/prod/". The list counts for no other.
	ResourceURI string `json:"resourceUri"`
	Counter     int64  `json:"counter"` // 1 for the first list, and one more for each later one
	// Previous is the digest of the bundle with the list before; empty for the first.
	Previous registry.Digest `json:"previous,omitempty"`
	IssuedOn time.Time       `json:"issuedOn"`
	Reason   string          `json:"reason"` // of this change
	Entries  []Restriction   `json:"entries"`
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
	case l.Counter < 1 || l.Counter > MaxCounter:
		return registry.Errorf(registry.CodeInvalid, "restriction list: counter %d: want 1 to %d", l.Counter, int64(MaxCounter))
	case (l.Counter == 1) != (l.Previous == ""):
		return registry.Errorf(registry.CodeInvalid, "restriction list %d: want the digest of the list before, except in the first", l.Counter)
	case l.IssuedOn.IsZero():
		return registry.Errorf(registry.CodeInvalid, "restriction list %d: the time is missing", l.Counter)
	case l.Reason == "":
		return registry.Errorf(registry.CodeInvalid, "restriction list %d: want a reason, which stays in the list", l.Counter)
	case len(l.Entries) > MaxRestrictions:
		return registry.Errorf(registry.CodeInvalid,
			"restriction list %d: %d restrictions: want at most %d; quarantine single releases, or lift what no release has any more",
			l.Counter, len(l.Entries), MaxRestrictions)
	}
	if l.Previous != "" {
		if err := l.Previous.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "restriction list %d: digest %.200q of the list before: %w", l.Counter, l.Previous, err)
		}
	}
	if err := registry.ValidateText("restriction list: the resource", l.ResourceURI); err != nil {
		return err
	}
	if err := registry.ValidateText("restriction list: the reason", l.Reason); err != nil {
		return err
	}
	for i, r := range l.Entries {
		if err := r.Validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(l.Entries[:i], r.Same) {
			return registry.Errorf(registry.CodeInvalid, "restriction list %d: %s is in it twice", l.Counter, r)
		}
	}
	return nil
}

// Same reports whether both restrictions are about the same thing.
func (r Restriction) Same(other Restriction) bool { return r.String() == other.String() }

// Equal reports whether both restrictions are equal in every field.
func (r Restriction) Equal(other Restriction) bool {
	return r.Same(other) && r.Reason == other.Reason && r.By == other.By && r.IssuedOn.Equal(other.IssuedOn)
}

// RestrictionList reads the list in a claim of an approver about a whole environment. resource is
// the URI of the environment, for which the signature was verified. Errors: CodeTrust if the claim
// is no list, is for another environment, or its signer is not trusted as approver there.
func (c Claim) RestrictionList(resource string) (RestrictionList, error) {
	var l RestrictionList
	switch {
	case c.Statement.PredicateType != PredicateRestrictions:
		return l, registry.Errorf(registry.CodeTrust, "restriction list: predicate type %.200q, want %q", c.Statement.PredicateType, PredicateRestrictions)
	case !c.SignedAs(RoleApprover):
		return l, registry.Errorf(registry.CodeTrust,
			"restriction list: key %s is not trusted as %s for all of %s (environments.yaml, trust:)", c.Signer, RoleApprover, resource)
	case !c.Statement.About(digest.FromString(resource)):
		return l, registry.Errorf(registry.CodeTrust, "restriction list: it is not about %s", resource)
	}
	if err := registry.DecodeSigned(c.Statement.Predicate, &l); err != nil {
		return RestrictionList{}, registry.Errorf(registry.CodeTrust, "restriction list: %w", err)
	}
	if err := l.Validate(); err != nil {
		return RestrictionList{}, registry.Errorf(registry.CodeTrust, "%w", err)
	}
	if l.ResourceURI != resource {
		return RestrictionList{}, registry.Errorf(registry.CodeTrust, "restriction list: it is for %s, not for %s", l.ResourceURI, resource)
	}
	return l, nil
}

// PeekRestrictionList returns what a signed list says, without verifying its signature. Errors: CodeTrust.
func PeekRestrictionList(bundle []byte) (RestrictionList, error) {
	var l RestrictionList
	err := Peek(bundle, MaxRestrictionBundle, PredicateRestrictions, &l)
	if err == nil {
		err = l.Validate()
	}
	if err != nil {
		return RestrictionList{}, registry.Errorf(registry.CodeTrust, "restriction list: %w", err)
	}
	return l, nil
}

// OnlyRestricts reports whether the state of the signer's key lets a restriction list add
// restrictions, and not lift any.
func (c Claim) OnlyRestricts() bool { return c.KeyRefuses() != "" }
