package evidence

import (
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Accept splits claims about the release into those that count, in order, and ignored ones,
// with the reason. A promotion copies those that count.
func Accept(r artifact.Release, claims []Claim) ([]Claim, []Ignored) { return Count(r, claims) }

// Count is [Accept] for what judges the claims that count.
func Count(r artifact.Release, claims []Claim) (Counted, []Ignored) {
	var out Counted
	var ignored []Ignored
	for _, c := range claims {
		if reason := doesNotCount(r, c); reason != "" {
			ignored = append(ignored, Ignored{c.Bundle, c.Subject, reason})
			continue
		}
		out = append(out, c)
	}
	return out, ignored
}

func doesNotCount(r artifact.Release, c Claim) string {
	_, isSubject := r.Subject(c.Subject)
	role, known := c.Issuer()
	switch {
	case !isSubject:
		return "it is about something else"
	case !c.Statement.About(c.Subject):
		return "its statement does not name the subject that it is attached to"
	case !known:
		return fmt.Sprintf("predicate type %q has no meaning here", c.Statement.PredicateType)
	case !c.MayIssue() && (c.Statement.PredicateType == PredicateApproval || c.Statement.PredicateType == PredicateBreakGlass):
		uri, _ := c.ApprovedResource()
		return fmt.Sprintf("signer %s is not trusted as %s for %s", c.Signer, role, registry.PlainText(uri))
	case !c.MayIssue():
		return fmt.Sprintf("signer %s is not trusted as %s here", c.Signer, role)
	}
	if reason := c.attestedRefuses(); reason != "" {
		return reason
	}
	return c.KeyRefuses()
}

// KeyRefuses returns why the state or the window of the signer's key excludes the claim, or "". Claims
// against a release count in every state of the key and at every time. Otherwise replacing a key would lift its
// quarantines and remove the failures that it reported.
func (c Claim) KeyRefuses() string {
	if c.Key == KeyTrusted && c.Window.IsZero() || c.against() {
		return ""
	}
	if c.Key != KeyRetired && c.Key != KeyTrusted {
		return fmt.Sprintf("key %s is revoked: only its statements against a release count", c.Signer)
	}
	if at, _ := c.Time(); c.Key == KeyRetired && (at.IsZero() || !at.Before(c.RetiredAt)) {
		return fmt.Sprintf("key %s was retired on %s, and nothing shows that this was made earlier", c.Signer,
			c.RetiredAt.UTC().Format(time.DateOnly))
	}
	return c.windowRefuses()
}

// Against reports whether the claim speaks against its subject. Such claims count in every state of
// their key.
func (c Claim) Against() bool { return c.against() }

// against reports whether the claim is against its subject: a quarantine, a withdrawn approval, or a
// report that did not pass.
func (c Claim) against() bool {
	if q, ok := c.Quarantine(); ok {
		return len(q.Lifts) == 0
	}
	if c.Statement.PredicateType == PredicateApproval {
		a, ok := c.Approval()
		return !ok || a.Withdrawn
	}
	read, ok := ReadReport(c)
	return ok && !read.Passes()
}

// MayIssue reports whether the roles of the signer allow the statement. Who is trusted to speak
// against a release is heard also if the statement names a person wrongly, or cannot be read.
func (c Claim) MayIssue() bool {
	role, ok := c.Issuer()
	if !ok || c.SignedAs(role) {
		return ok
	}
	own, _ := RoleFor(c.Statement.PredicateType)
	_, readable := c.person()
	return c.against() && (c.SignedAs(own) || !readable && c.SignedAs(RoleAttester))
}

// attestedRefuses returns why a statement that was signed for a person does not count, or "". Only
// the service makes such statements, and the history has each; so a stolen key alone makes none.
func (c Claim) attestedRefuses() string {
	if c.Attested() == nil || c.against() {
		return ""
	}
	switch {
	case slices.ContainsFunc(c.Roles, func(r Role) bool { return r != RoleAttester }):
		return "key " + c.Signer + " has other roles beside attester: give the service's attester a key of its own"
	case c.Statement.PredicateType != PredicateApproval:
		return "an attester cannot say this: only approvers do, with keys of their own"
	case c.Recorded == 0:
		return "it names a person, and the history does not have it"
	}
	return ""
}
