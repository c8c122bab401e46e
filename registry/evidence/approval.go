package evidence

import (
	"fmt"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Approval is the predicate https://mlpromote.dev/approval/v1, about a release: its signer agrees
// that the release is promoted to the resource. With Withdrawn it takes back what the same signer
// approved there before.
type Approval struct {
	// ResourceURI is the model's repository in the destination: "oci://local/prod/vision/digits".
	// The approval counts for no other.
	ResourceURI string    `json:"resourceUri"`
	Comment     string    `json:"comment"`
	ApprovedOn  time.Time `json:"approvedOn"`
	// ExpiresOn is the time from which the approval does not count. Zero: it does not expire.
	ExpiresOn time.Time `json:"expiresOn,omitzero"`
	// Accepts are the lines of requirements that the signer accepts although they are unmet, exactly
	// as a decision has them.
	Accepts   []string `json:"accepts,omitempty"`
	Withdrawn bool     `json:"withdrawn,omitempty"`
	// History is the hash of an event of the registry that the approval is for, so that it does not count in another one of the same
	// name. Approvals of other tools have none, and count only where the registry's name is not "local".
	History DigestSet `json:"history,omitempty"`
	// Person is who says this, where the service's attester signs for somebody who signed in. It is nil
	// where the key of an approver signs.
	Person *Person `json:"person,omitempty"`
}

// MaxAccepts is the maximum number of lines that an approval accepts. Each has at most [registry.MaxText]
// bytes.
const MaxAccepts = 64

// NewApproval returns a statement about a release, ready to sign. Errors: CodeInvalid for an
// approval that [Approval.Validate] refuses.
func NewApproval(subject StatementSubject, a Approval) ([]byte, error) {
	a.ApprovedOn = a.ApprovedOn.UTC()
	if !a.ExpiresOn.IsZero() {
		a.ExpiresOn = a.ExpiresOn.UTC()
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return NewStatement(PredicateApproval, a, subject)
}

// Validate checks the form of an approval. Errors: CodeInvalid.
func (a Approval) Validate() error {
	switch {
	case !strings.HasPrefix(a.ResourceURI, registry.ResourceScheme) || len(a.ResourceURI) == len(registry.ResourceScheme):
		return registry.Errorf(registry.CodeInvalid, "approval: resource %.200q: want that of a model in an environment, %sREGISTRY/ENVIRONMENT/MODEL",
			a.ResourceURI, registry.ResourceScheme)
	case a.Comment == "":
		return registry.Errorf(registry.CodeInvalid, "approval: want a comment, which stays with the evidence")
	case a.ApprovedOn.IsZero():
		return registry.Errorf(registry.CodeInvalid, "approval: the time of the approval is missing")
	case !a.ExpiresOn.IsZero() && !a.ExpiresOn.After(a.ApprovedOn):
		return registry.Errorf(registry.CodeInvalid, "approval: it expires on %s, which is not after %s, when it was given: want a later time",
			registry.UTC(a.ExpiresOn), registry.UTC(a.ApprovedOn))
	case a.Withdrawn && (len(a.Accepts) > 0 || !a.ExpiresOn.IsZero()):
		return registry.Errorf(registry.CodeInvalid, "approval: one that is withdrawn can neither accept requirements nor have an expiry")
	case len(a.Accepts) > MaxAccepts:
		return registry.Errorf(registry.CodeInvalid, "approval: it accepts %d lines: want at most %d", len(a.Accepts), MaxAccepts)
	}
	if err := registry.ValidateText("approval: the resource", a.ResourceURI); err != nil {
		return err
	}
	if err := registry.ValidateText("approval: the comment", a.Comment); err != nil {
		return err
	}
	for i, line := range a.Accepts {
		if line == "" {
			return registry.Errorf(registry.CodeInvalid, "approval: accepted line %d is empty: want the line of a requirement", i+1)
		}
		if err := registry.ValidateText(fmt.Sprintf("approval: accepted line %d", i+1), line); err != nil {
			return err
		}
	}
	if a.Person != nil {
		return a.Person.Validate()
	}
	return nil
}

// Approval reads the approval in the claim. ok is false for other predicate types, and for an
// approval that cannot be read or that [Approval.Validate] refuses. It does not say whether the
// approval counts: see [Approvals].
func (c Claim) Approval() (a Approval, ok bool) {
	a, err := c.approval()
	return a, err == nil
}

func (c Claim) approval() (Approval, error) {
	if c.Statement.PredicateType != PredicateApproval {
		return Approval{}, registry.Errorf(registry.CodeInvalid, "predicate type %q, want %q", c.Statement.PredicateType, PredicateApproval)
	}
	var a Approval
	if err := registry.DecodeSigned(c.Statement.Predicate, &a); err != nil {
		return Approval{}, err
	}
	if err := a.Validate(); err != nil {
		return Approval{}, err
	}
	return a, nil
}

// reason is the comment with what the approval is for.
func (a Approval) reason() string {
	if a.Withdrawn {
		return "withdrawn for " + placeOf(a.ResourceURI) + ": " + a.Comment
	}
	return "for " + placeOf(a.ResourceURI) + ": " + a.Comment
}

// placeOf is a resource without the registry: the environment and the model.
func placeOf(resource string) string {
	_, where, _ := strings.Cut(strings.TrimPrefix(resource, registry.ResourceScheme), "/")
	return where
}

// expired reports whether the approval no longer counts at a time. At the zero time, which is
// unknown, every approval that expires at all counts as expired.
func (a Approval) expired(now time.Time) bool {
	return !a.ExpiresOn.IsZero() && (now.IsZero() || !now.Before(a.ExpiresOn))
}
