package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// agreed are approvers who agreed to skip the same requirements.
type agreed struct {
	skips []string // sorted
	given []GivenBreakGlass
}

// skipsUnmet reports whether a promotion may skip requirements, and there are some to skip.
func skipsUnmet(j judging) bool { return j.policy.Promotion.BreakGlass && len(j.decided.Unmet()) > 0 }

// skipped reports whether it was decided what a promotion skips. Then each failing report is looked at by itself, since a missing
// proof may hide it.
func skipped(j judging) bool {
	return slices.ContainsFunc(j.decided.Requirements, func(req Requirement) bool { return req.Name == requireBreakGlass })
}

// judgeBreakGlass marks unmet requirements as skipped, if enough approvers agreed to skip just these, or a
// list that has them.
func judgeBreakGlass(j judging, req *Requirement) {
	unmet := j.decided.Unmet()
	chosen, others := j.policy.chooseSkips(j.release, j.claims, unmet)
	names := make(map[string]bool)
	for i, u := range j.decided.Requirements {
		if !u.Met && slices.Contains(chosen.skips, u.Name) {
			j.decided.Requirements[i].Skipped = true
			names[u.Name] = true
		}
	}
	if len(names) == 0 {
		req.Detail = j.policy.howToBreak(j.release, unmet, others)
		return
	}
	req.Met = true
	s := evidence.Skipped{Requirements: registry.SortedKeys(names)}
	for _, g := range chosen.given {
		s.Approvers, s.Comments = append(s.Approvers, g.by()), append(s.Comments, g.Comment)
		req.Evidence = append(req.Evidence, g.Bundle)
		req.until = registry.Earlier(req.until, g.ExpiresOn)
	}
	j.decided.Skipped, req.Detail = &s, s.String()
}

// chooseSkips returns the approvers whose common list leaves the fewest requirements unmet, and what
// speaks against the others. Without enough approvers of one list it returns none.
func (p Policy) chooseSkips(r artifact.Release, claims []evidence.Claim, unmet []Requirement) (chosen agreed, others []string) {
	var lists []agreed
	h := p.Approvals.hands(claims, true)
	for _, g := range p.BreakGlassApprovals(r, claims) {
		if g.Why != "" {
			others = append(others, "that of "+g.by()+" does not count: "+g.Why)
			continue
		}
		skips := slices.Sorted(slices.Values(g.Skips))
		i := slices.IndexFunc(lists, func(a agreed) bool { return slices.Equal(a.skips, skips) })
		if i < 0 {
			lists, i = append(lists, agreed{skips: skips}), len(lists)
		}
		lists[i].given = append(lists[i].given, g)
	}
	left := len(unmet)
	for _, a := range lists {
		given, n := h.persons(a.given)
		forbidden := slices.DeleteFunc(slices.Clone(a.skips), func(name string) bool { return slices.Contains(p.BreakGlass, name) })
		switch remains := a.leaves(unmet); {
		case len(forbidden) > 0:
			others = append(others, fmt.Sprintf("%s does not let %s be skipped (break-glass in environments.yaml)",
				p.Promotion.Environment, strings.Join(forbidden, ", ")))
		case n < breakGlassApprovers:
			others = append(others, fmt.Sprintf("%d of %d approved to skip %s", n, breakGlassApprovers, strings.Join(a.skips, ", ")))
		case remains < left:
			chosen, left = agreed{a.skips, given}, remains
		}
	}
	slices.Sort(others)
	return chosen, others
}

// leaves counts the requirements that the list does not have.
func (a agreed) leaves(unmet []Requirement) (n int) {
	for _, u := range unmet {
		if !slices.Contains(a.skips, u.Name) {
			n++
		}
	}
	return n
}

// persons keeps one approval of each key, ordered by name, and counts the hands that gave them.
func (h hands) persons(given []GivenBreakGlass) (kept []GivenBreakGlass, n int) {
	people, signers := make(map[string]bool), make(map[string]bool)
	for _, g := range given {
		if signers[g.Signer] {
			continue
		}
		signers[g.Signer], people[h.find(g.Signer)] = true, true
		kept = append(kept, g)
	}
	slices.SortFunc(kept, func(a, b GivenBreakGlass) int { return strings.Compare(a.by(), b.by()) })
	return kept, len(people)
}

// howToBreak says what is missing.
func (p Policy) howToBreak(r artifact.Release, unmet []Requirement, others []string) string {
	if len(p.BreakGlass) == 0 {
		return p.Promotion.Environment + " lets no requirement be skipped (break-glass in environments.yaml)"
	}
	command := fmt.Sprintf("mlpromote approve %s:%s --env %s --break-glass", r.Model, r.Tag(), p.Promotion.Environment)
	names := make(map[string]bool)
	for _, u := range unmet {
		if slices.Contains(p.BreakGlass, u.Name) {
			names[u.Name] = true
		}
	}
	for _, name := range registry.SortedKeys(names) {
		command += " --skip " + name
	}
	said := append([]string{fmt.Sprintf("missing: %d approvers who agree to skip the same", breakGlassApprovers)}, others...)
	return strings.Join(said, "; ") + ": each runs " + command + " --comment TEXT"
}

// breakGlassApprovers is how many must agree.
const breakGlassApprovers = 2

// GivenBreakGlass is a break-glass approval by a trusted approver. Why is empty if it counts.
type GivenBreakGlass struct {
	evidence.BreakGlass
	Why    string          `json:"why,omitempty"` // why it does not count
	Signer string          `json:"signer"`        // key identifier
	Keys   []string        `json:"keys,omitempty"`
	Bundle registry.Digest `json:"bundle"`
}

// String describes the approval in a line: who, for what, why, and whether it counts.
func (g GivenBreakGlass) String() string {
	text := fmt.Sprintf("approval by %s %s (until %s)", g.by(), g.Reason(), registry.UTC(g.ExpiresOn))
	if g.Why != "" {
		text += " (does not count: " + g.Why + ")"
	}
	return registry.PlainText(text)
}

// by names the signer, by the file of its key if that is known.
func (g GivenBreakGlass) by() string {
	return evidence.GivenApproval{Signer: g.Signer, Keys: g.Keys}.By()
}

// BreakGlassApprovals lists the break-glass approvals of a release for the resource of a promotion,
// and whether they count for it.
func (p Policy) BreakGlassApprovals(r artifact.Release, claims []evidence.Claim) []GivenBreakGlass {
	counted, _ := evidence.Count(r, claims)
	at, h, approvals := p.Promotion, p.Approvals.hands(claims, true), evidence.Distinct(counted.Of(evidence.PredicateApproval, r.Digest))
	built := p.built(h, r, claims)
	var given []GivenBreakGlass
	for _, c := range evidence.Distinct(counted.Of(evidence.PredicateBreakGlass, r.Digest)) {
		b, ok := c.BreakGlass()
		if !ok || checkSkips(b) != nil || at.Resource == "" || b.ResourceURI != at.Resource {
			continue
		}
		g := GivenBreakGlass{BreakGlass: b, Signer: c.Signer, Keys: c.Keys, Bundle: c.Bundle}
		switch {
		case built[h.find(c.Signer)]:
			g.Why = "it, or another key that the same person may hold, signed the build, so it cannot approve"
		case evidence.Withdrawn(c, b.ResourceURI, approvals):
			g.Why = "it was taken back"
		default:
			g.Why = spentBy(b, c, at)
		}
		given = append(given, g)
	}
	return given
}

// spentBy returns why the statement does not count for a promotion, or "". The history must have it,
// since the head was last moved: nothing is skipped in silence, and nothing is skipped twice.
func spentBy(b evidence.BreakGlass, c evidence.Claim, at PromotionContext) string {
	same := b.Replaces.Names(at.Head) || at.Head == "" && len(b.Replaces) == 0
	switch why := at.unknownTime(); {
	case why != "":
		return why
	case !same || at.Environment == "":
		return "it is for a promotion that replaces " + evidence.Shown(b.Replaces.SHA256())
	case c.Recorded == 0:
		return "the history does not have it"
	case at.Head != "" && at.HeadMoved == 0, c.Recorded <= at.HeadMoved:
		return "the head was moved after it was given"
	case !at.Now.Before(b.ExpiresOn), !at.Now.Before(c.RecordedAt.Add(evidence.MaxBreakGlass)):
		return "it expired on " + registry.UTC(registry.Earlier(b.ExpiresOn, c.RecordedAt.Add(evidence.MaxBreakGlass)))
	}
	return ""
}

// NewBreakGlass returns a statement about a release, ready to sign. Errors: CodeInvalid for one that
// [evidence.BreakGlass.Validate] refuses, or that skips what cannot be skipped.
func NewBreakGlass(subject evidence.StatementSubject, b evidence.BreakGlass) ([]byte, error) {
	b.ApprovedOn, b.ExpiresOn = b.ApprovedOn.UTC(), b.ExpiresOn.UTC()
	if err := cmp.Or(checkSkips(b), b.Validate()); err != nil {
		return nil, err
	}
	return evidence.NewStatement(evidence.PredicateBreakGlass, b, subject)
}

// checkSkips checks that a statement skips requirements, and only those that can be skipped.
func checkSkips(b evidence.BreakGlass) error {
	if len(b.Skips) == 0 {
		return registry.Errorf(registry.CodeInvalid, "break-glass: it skips nothing: want some of %s", strings.Join(Skippable(), ", "))
	}
	return validateSkips("break-glass", b.Skips)
}
