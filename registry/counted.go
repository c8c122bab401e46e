package registry

import (
	"fmt"
	"time"
)

// Accept splits claims about the release into those that count, in order, and ignored ones,
// with the reason. A promotion copies those that count.
func Accept(r Release, claims []Claim) ([]Claim, []Ignored) { return count(r, claims) }

// counted are the claims that count. Each is about the release or one of its engines, has a
// predicate type that the signer's role may issue, and is signed by a key whose state allows
// it.
type counted []Claim

func count(r Release, claims []Claim) (counted, []Ignored) {
	var out counted
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

func doesNotCount(r Release, c Claim) string {
	_, isEngine := r.Engine(c.Subject)
	role, known := c.Issuer()
	switch {
	case !isEngine && c.Subject != r.Digest:
		return "it is about something else"
	case !c.Statement.About(c.Subject):
		return "its statement does not name the subject that it is attached to"
	case !known:
		return fmt.Sprintf("predicate type %q has no meaning here", c.Statement.PredicateType)
	case !c.MayIssue() && (c.Statement.PredicateType == PredicateApproval || c.Statement.PredicateType == PredicateBreakGlass):
		uri, _ := c.ApprovedResource()
		return fmt.Sprintf("signer %s is not trusted as %s for %s", c.Signer, role, PlainText(uri))
	case !c.MayIssue():
		return fmt.Sprintf("signer %s is not trusted as %s here", c.Signer, role)
	}
	if reason := c.attestedRefuses(); reason != "" {
		return reason
	}
	return c.keyRefuses()
}

// keyRefuses returns why the state or the window of the signer's key excludes the claim, or "". Claims
// against a release count in every state of the key and at every time. Otherwise replacing a key would lift its
// quarantines and remove the failures that it reported.
func (c Claim) keyRefuses() string {
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
	read, ok := readReport(c)
	return ok && !read.passes()
}

// claimedTime returns the time that the claim states, or zero.
func (c Claim) claimedTime() time.Time {
	switch c.Statement.PredicateType {
	case PredicateParity, PredicatePerformance:
		read, _ := readReport(c)
		return read.FinishedOn
	case PredicateVSA:
		v, _ := c.vsa()
		return v.TimeVerified
	case PredicateQuarantine:
		q, _ := c.Quarantine()
		return q.IssuedOn
	case PredicateApproval:
		a, _ := c.Approval()
		return a.ApprovedOn
	case PredicateBreakGlass:
		b, _ := c.BreakGlass()
		return b.ApprovedOn
	case PredicateProvenance:
		return c.Statement.provenanceMetadata().FinishedOn
	case PredicateRestrictions:
		var l RestrictionList
		_ = DecodeSigned(c.Statement.Predicate, &l)
		return l.IssuedOn
	}
	return time.Time{}
}

// of lists the claims of a predicate type about a digest.
func (cs counted) of(predicateType string, subject Digest) []Claim {
	var out []Claim
	for _, c := range cs {
		if c.Statement.PredicateType == predicateType && c.Subject == subject {
			out = append(out, c)
		}
	}
	return out
}
