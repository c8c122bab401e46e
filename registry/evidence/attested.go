package evidence

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Attester signs for callers who signed in to a service and have no key of their own.
type Attester interface {
	// Attest signs, with the key of the service's attester, what the caller of ctx says about a release,
	// and attaches it. The statement names the caller. Errors: CodeUnauthenticated if ctx has no
	// principal that is a [Person]; CodePolicy if the environment does not let the person
	// approve; CodeInvalid for a request that [AttestRequest.Validate] refuses; CodeUnavailable
	// without an attester's key; those of Attach.
	Attest(ctx context.Context, r AttestRequest) (Attested, error)
}

// AttestKind is what a person says. The zero AttestKind is refused.
type AttestKind string

// What a person can say.
const (
	AttestApproval   AttestKind = "approval"   // the release may be promoted to the environment
	AttestWithdrawal AttestKind = "withdrawal" // what the same person approved does not count any more
	AttestQuarantine AttestKind = "quarantine" // the release or engine must not be used
)

// attestKinds lists them.
func attestKinds() []AttestKind {
	return []AttestKind{AttestApproval, AttestWithdrawal, AttestQuarantine}
}

// AttestRequest is what a person says about a release.
type AttestRequest struct {
	Kind AttestKind `json:"kind"`
	// Environment is the destination of the promotion, or where the subject of a quarantine is.
	Environment string `json:"environment"`
	Model       string `json:"-" path:"model"`
	// Release is a digest: who approves a tag could approve other bytes than they saw.
	Release registry.Digest `json:"release"`
	Subject registry.Digest `json:"subject,omitempty"`  // of a quarantine: one engine of the release; empty: the release
	Comment string          `json:"comment"`            // why; stays with the evidence
	Expires time.Time       `json:"expiresOn,omitzero"` // of an approval: when it ends to count; zero: it does not expire
	Accepts []string        `json:"accepts,omitempty"`  // of an approval: see [Approval.Accepts]
}

// Validate checks the form. Errors: CodeInvalid.
func (r AttestRequest) Validate() error {
	switch {
	case !slices.Contains(attestKinds(), r.Kind):
		return registry.Errorf(registry.CodeInvalid, "attestation: kind %.40q: want one of %v", r.Kind, attestKinds())
	case r.Release.Validate() != nil:
		return registry.Errorf(registry.CodeInvalid, "attestation: release %.80q: want a digest, not a tag", r.Release)
	case r.Comment == "":
		return registry.Errorf(registry.CodeInvalid, "attestation: want a comment, which stays with the evidence")
	case r.Kind != AttestApproval && (!r.Expires.IsZero() || len(r.Accepts) > 0):
		return registry.Errorf(registry.CodeInvalid, "attestation: only an approval can expire or accept lines")
	case r.Kind != AttestQuarantine && r.Subject != "":
		return registry.Errorf(registry.CodeInvalid, "attestation: only a quarantine has a subject: an approval is about a release")
	case r.Subject != "" && r.Subject.Validate() != nil:
		return registry.Errorf(registry.CodeInvalid, "attestation: subject %.80q: want a digest", r.Subject)
	}
	return registry.ValidateText("attestation: the comment", r.Comment)
}

// Attested is what was signed for a person and attached.
type Attested struct {
	Kind        AttestKind      `json:"kind"`
	Environment string          `json:"environment"` // that of the request
	From        string          `json:"from"`        // where it was attached
	Model       string          `json:"model"`
	Version     string          `json:"version"` // tag of the release
	Release     registry.Digest `json:"release"`
	Subject     registry.Digest `json:"subject"`
	Evidence    registry.Digest `json:"evidence"` // of the bundle's manifest
	// NotIn are other environments that have the subject of a quarantine, and where it does not hold: the
	// caller has no permission there.
	NotIn  []string `json:"notIn,omitempty"`
	Person Person   `json:"person"`
}

// person returns whom a statement names as the person who says it; nil for statements that name no
// one. readable is false for one that could name a person and cannot be read.
func (c Claim) person() (p *Person, readable bool) {
	switch c.Statement.PredicateType {
	case PredicateApproval:
		a, err := c.approval()
		return a.Person, err == nil
	case PredicateQuarantine:
		var q Quarantine
		if registry.DecodeSigned(c.Statement.Predicate, &q) != nil || q.Person != nil && q.Person.Validate() != nil {
			return nil, false
		}
		return q.Person, true
	}
	return nil, true
}

// Attested returns the person for whom the service's attester signed. It is nil if a key speaks
// for itself, also if its statement names somebody.
func (c Claim) Attested() *Person {
	if !c.SignedAs(RoleAttester) {
		return nil
	}
	p, _ := c.person()
	return p
}

// Issuer returns the role that may make the statement: that of [RoleFor], or the attester's if it
// names a person. ok is false for unknown predicate types.
func (c Claim) Issuer() (role Role, ok bool) {
	role, ok = RoleFor(c.Statement.PredicateType)
	if p, _ := c.person(); p != nil {
		return RoleAttester, ok
	}
	return role, ok
}

// voice identifies who speaks in a claim: the signer, or the person whom an attester names.
func (c Claim) voice() string {
	if p := c.Attested(); p != nil {
		return p.Key()
	}
	return c.Signer
}
