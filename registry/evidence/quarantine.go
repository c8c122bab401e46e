package evidence

import (
	"bytes"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Quarantine is the predicate https://mlpromote.dev/quarantine/v1, about a release or an
// engine. Without Lifts it puts its subject in quarantine. With Lifts it ends only the
// quarantines that it names. An empty predicate puts its subject
// in quarantine.
type Quarantine struct {
	Reason   string    `json:"reason,omitempty"`
	IssuedOn time.Time `json:"issuedOn,omitzero"`
	// Lifts are the digests of the bundles of the quarantines that this one ends. A lifted bundle
	// stays lifted.
	Lifts []registry.Digest `json:"lifts,omitempty"`
	// Person is who says this, as in [Approval].
	Person *Person `json:"person,omitempty"`
}

// NewQuarantine returns a statement, ready to sign, that puts the subject in quarantine.
// Errors: CodeInvalid if the reason is missing or [registry.ValidateText] refuses it.
func NewQuarantine(subject StatementSubject, reason string, now time.Time) ([]byte, error) {
	return newQuarantine(subject, Quarantine{Reason: reason, IssuedOn: now.UTC()})
}

// NewQuarantineLift returns a statement, ready to sign, that ends quarantines of the subject.
// lifts are the digests of their bundles. Errors: CodeInvalid without a reason or digests.
func NewQuarantineLift(subject StatementSubject, reason string, now time.Time, lifts ...registry.Digest) ([]byte, error) {
	if len(lifts) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "lift a quarantine: want the digest of its bundle")
	}
	return newQuarantine(subject, Quarantine{Reason: reason, IssuedOn: now.UTC(), Lifts: lifts})
}

func newQuarantine(subject StatementSubject, q Quarantine) ([]byte, error) {
	if q.Reason == "" {
		return nil, registry.Errorf(registry.CodeInvalid, "quarantine: want a reason, which stays with the evidence")
	}
	if err := registry.ValidateText("quarantine: the reason", q.Reason); err != nil {
		return nil, err
	}
	for _, d := range q.Lifts {
		if err := d.Validate(); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "lift a quarantine: digest %q: %w", d, err)
		}
	}
	return NewStatement(PredicateQuarantine, q, subject)
}

// Quarantine reads the quarantine in the claim. An unreadable claim, or a lift with an invalid
// digest, counts as a quarantine. ok is false for other predicate types.
func (c Claim) Quarantine() (q Quarantine, ok bool) {
	if c.Statement.PredicateType != PredicateQuarantine {
		return Quarantine{}, false
	}
	if err := registry.DecodeSigned(c.Statement.Predicate, &q); err != nil {
		return Quarantine{}, true
	}
	if slices.ContainsFunc(q.Lifts, func(d registry.Digest) bool { return d.Validate() != nil }) {
		q.Lifts = nil
	}
	return q, true
}

// Restates reports whether both claims hold the same statement of the same signer. Anyone can
// put a statement into another bundle, which then has another digest.
func (c Claim) Restates(other Claim) bool {
	return c.Signer == other.Signer && c.Subject == other.Subject &&
		c.Statement.PredicateType == other.Statement.PredicateType &&
		bytes.Equal(c.Statement.Predicate, other.Statement.Predicate)
}
