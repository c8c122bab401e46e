package evidence

import (
	"fmt"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// BreakGlass is the predicate https://mlpromote.dev/break-glass/v1, about a release: its signer agrees
// that the release replaces one head in an emergency although requirements are unmet. It is no
// [Approval], and an Approval is none of these. A withdrawal of the approval takes it back too.
type BreakGlass struct {
	// ResourceURI is the model's repository in the destination, as in [Approval].
	ResourceURI string `json:"resourceUri"`
	// Replaces is the head of the destination; empty if it has none. The statement counts for no other.
	Replaces DigestSet `json:"replaces,omitempty"`
	// Skips are the requirements that need not be met.
	Skips      []string  `json:"skips"`
	Comment    string    `json:"comment"` // why it cannot wait
	ApprovedOn time.Time `json:"approvedOn"`
	ExpiresOn  time.Time `json:"expiresOn"` // at most [MaxBreakGlass] later
}

// MaxBreakGlass is the longest time for which a [BreakGlass] counts, after it was given and after it
// was recorded.
const MaxBreakGlass = 24 * time.Hour

// Validate checks the form, but not whether the requirements can be skipped, which the policy decides. Errors: CodeInvalid.
func (b BreakGlass) Validate() error {
	if len(b.Replaces) > 0 && b.Replaces.SHA256().Validate() != nil {
		return registry.Errorf(registry.CodeInvalid, "break-glass: what it replaces has no SHA-256 digest")
	}
	if b.ExpiresOn.IsZero() || b.ExpiresOn.Sub(b.ApprovedOn) > MaxBreakGlass {
		return registry.Errorf(registry.CodeInvalid, "break-glass: want it to expire at most %s after it was given", MaxBreakGlass)
	}
	// The rest is as in an approval.
	return Approval{ResourceURI: b.ResourceURI, Comment: b.Comment, ApprovedOn: b.ApprovedOn, ExpiresOn: b.ExpiresOn}.Validate()
}

// BreakGlass reads the statement in the claim. ok is false for other predicate types and for one that
// cannot be read or that [BreakGlass.Validate] refuses. It does not say whether it counts.
func (c Claim) BreakGlass() (b BreakGlass, ok bool) {
	b, err := c.ReadBreakGlass()
	return b, err == nil
}

// ReadBreakGlass is [Claim.BreakGlass] with the reason why there is none. Errors: CodeInvalid.
func (c Claim) ReadBreakGlass() (BreakGlass, error) {
	if c.Statement.PredicateType != PredicateBreakGlass {
		return BreakGlass{}, registry.Errorf(registry.CodeInvalid, "predicate type %q, want %q", c.Statement.PredicateType, PredicateBreakGlass)
	}
	var b BreakGlass
	if err := registry.DecodeSigned(c.Statement.Predicate, &b); err != nil {
		return BreakGlass{}, err
	}
	if err := b.Validate(); err != nil {
		return BreakGlass{}, err
	}
	return b, nil
}

// ApprovedResource returns the resource that an approval or a break-glass approval is for. ok is
// false for other claims, and for those that cannot be read.
func (c Claim) ApprovedResource() (uri string, ok bool) {
	if b, ok := c.BreakGlass(); ok {
		return b.ResourceURI, true
	}
	a, ok := c.Approval()
	return a.ResourceURI, ok
}

// Reason is the comment with what the statement is for.
func (b BreakGlass) Reason() string {
	return fmt.Sprintf("break-glass for %s, skipping %s: %s", placeOf(b.ResourceURI), strings.Join(b.Skips, ", "), b.Comment)
}
