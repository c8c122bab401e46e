package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// BreakGlass is the predicate https://mlpromote.dev/break-glass/v1, about a release: its signer agrees
// that the release replaces one head in an emergency although requirements are unmet. It is no
// [Approval], and an Approval is none of these. A withdrawal of the approval takes it back too.
type BreakGlass struct {
	// ResourceURI is the model's repository in the destination, as in [Approval].
	ResourceURI string `json:"resourceUri"`
	// Replaces is the head of the destination; empty if it has none. The statement counts for no other.
	Replaces DigestSet `json:"replaces,omitempty"`
	// Skips are the requirements that need not be met, of [Skippable].
	Skips      []string  `json:"skips"`
	Comment    string    `json:"comment"` // why it cannot wait
	ApprovedOn time.Time `json:"approvedOn"`
	ExpiresOn  time.Time `json:"expiresOn"` // at most [MaxBreakGlass] later
}

// MaxBreakGlass is the longest time for which a [BreakGlass] counts, after it was given and after it
// was recorded.
const MaxBreakGlass = 24 * time.Hour

// breakGlassApprovers is how many must agree.
const breakGlassApprovers = 2

// NewBreakGlass returns a statement about a release, ready to sign. Errors: CodeInvalid for one that
// [BreakGlass.Validate] refuses.
func NewBreakGlass(subject StatementSubject, b BreakGlass) ([]byte, error) {
	b.ApprovedOn, b.ExpiresOn = b.ApprovedOn.UTC(), b.ExpiresOn.UTC()
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return NewStatement(PredicateBreakGlass, b, subject)
}

// Validate checks the form. Errors: CodeInvalid.
func (b BreakGlass) Validate() error {
	if err := validateSkips("break-glass", b.Skips); err != nil {
		return err
	}
	if len(b.Skips) == 0 {
		return Errorf(CodeInvalid, "break-glass: it skips nothing: want some of %s", strings.Join(Skippable(), ", "))
	}
	if len(b.Replaces) > 0 && b.Replaces.SHA256().Validate() != nil {
		return Errorf(CodeInvalid, "break-glass: what it replaces has no SHA-256 digest")
	}
	if b.ExpiresOn.IsZero() || b.ExpiresOn.Sub(b.ApprovedOn) > MaxBreakGlass {
		return Errorf(CodeInvalid, "break-glass: want it to expire at most %s after it was given", MaxBreakGlass)
	}
	// The rest is as in an approval.
	return Approval{ResourceURI: b.ResourceURI, Comment: b.Comment, ApprovedOn: b.ApprovedOn, ExpiresOn: b.ExpiresOn}.Validate()
}

// validateSkips checks that requirements can be skipped, and that each is listed once.
func validateSkips(what string, skips []string) error {
	for i, name := range skips {
		if !slices.Contains(Skippable(), name) {
			return Errorf(CodeInvalid, "%s: requirement %.40q cannot be skipped: want some of %s", what, name, strings.Join(Skippable(), ", "))
		}
		if slices.Contains(skips[:i], name) {
			return Errorf(CodeInvalid, "%s: requirement %q: listed twice", what, name)
		}
	}
	return nil
}

// BreakGlass reads the statement in the claim. ok is false for other predicate types and for one that
// cannot be read or that [BreakGlass.Validate] refuses. It does not say whether it counts.
func (c Claim) BreakGlass() (b BreakGlass, ok bool) {
	b, err := c.breakGlass()
	return b, err == nil
}

func (c Claim) breakGlass() (BreakGlass, error) {
	if c.Statement.PredicateType != PredicateBreakGlass {
		return BreakGlass{}, Errorf(CodeInvalid, "predicate type %q, want %q", c.Statement.PredicateType, PredicateBreakGlass)
	}
	var b BreakGlass
	if err := DecodeSigned(c.Statement.Predicate, &b); err != nil {
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

// checkNewBreakGlass checks that a new statement can be read, and that its times fit the one at which
// it is recorded.
func (c Claim) checkNewBreakGlass() error {
	b, err := c.breakGlass()
	if err != nil {
		return err
	}
	return checkTimes(b.ApprovedOn, b.ExpiresOn, c.RecordedAt)
}

// reason is the comment with what the statement is for.
func (b BreakGlass) reason() string {
	return fmt.Sprintf("break-glass for %s, skipping %s: %s", placeOf(b.ResourceURI), strings.Join(b.Skips, ", "), b.Comment)
}

// GivenBreakGlass is a break-glass approval by a trusted approver. Why is empty if it counts.
type GivenBreakGlass struct {
	BreakGlass
	Why    string   `json:"why,omitempty"` // why it does not count
	Signer string   `json:"signer"`        // key identifier
	Keys   []string `json:"keys,omitempty"`
	Bundle Digest   `json:"bundle"`
}

// String describes the approval in a line: who, for what, why, and whether it counts.
func (g GivenBreakGlass) String() string {
	text := fmt.Sprintf("approval by %s %s (until %s)", g.by(), g.reason(), utc(g.ExpiresOn))
	if g.Why != "" {
		text += " (does not count: " + g.Why + ")"
	}
	return PlainText(text)
}

// by names the signer, by the file of its key if that is known.
func (g GivenBreakGlass) by() string { return GivenApproval{Signer: g.Signer, Keys: g.Keys}.by() }

// BreakGlassApprovals lists the break-glass approvals of a release for the resource of a promotion,
// and whether they count for it.
func (p Policy) BreakGlassApprovals(r Release, claims []Claim) []GivenBreakGlass {
	counted, _ := count(r, claims)
	at, h, approvals := p.Promotion, p.Approvals.hands(claims, true), distinct(counted.of(PredicateApproval, r.Digest))
	built := p.built(h, r, claims)
	var given []GivenBreakGlass
	for _, c := range distinct(counted.of(PredicateBreakGlass, r.Digest)) {
		b, ok := c.BreakGlass()
		if !ok || at.Resource == "" || b.ResourceURI != at.Resource {
			continue
		}
		g := GivenBreakGlass{BreakGlass: b, Signer: c.Signer, Keys: c.Keys, Bundle: c.Bundle}
		switch {
		case built[h.find(c.Signer)]:
			g.Why = "it, or another key that the same person may hold, signed the build, so it cannot approve"
		case withdrawn(c, b.ResourceURI, approvals):
			g.Why = "it was taken back"
		default:
			g.Why = b.spent(c, at)
		}
		given = append(given, g)
	}
	return given
}

// spent returns why the statement does not count for a promotion, or "". The history must have it,
// since the head was last moved: nothing is skipped in silence, and nothing is skipped twice.
func (b BreakGlass) spent(c Claim, at PromotionContext) string {
	same := b.Replaces.Names(at.Head) || at.Head == "" && len(b.Replaces) == 0
	switch why := at.unknownTime(); {
	case why != "":
		return why
	case !same || at.Environment == "":
		return "it is for a promotion that replaces " + shown(b.Replaces.SHA256())
	case c.Recorded == 0:
		return "the history does not have it"
	case at.Head != "" && at.HeadMoved == 0, c.Recorded <= at.HeadMoved:
		return "the head was moved after it was given"
	case !at.Now.Before(b.ExpiresOn), !at.Now.Before(c.RecordedAt.Add(MaxBreakGlass)):
		return "it expired on " + utc(earlier(b.ExpiresOn, c.RecordedAt.Add(MaxBreakGlass)))
	}
	return ""
}
