package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// The requirements that compare a release with the one that it replaces. Both are met where the
// environment has none yet.
const (
	// No limit is looser than that of the release now there. Limits that cannot be compared count
	// as looser.
	RequireNoLooser = "no-looser"
	// What calls the release now there can call this one.
	RequireCompatibleInterface = "compatible-interface"
)

// Comparison is how the limits and the interface of a release differ from those of the release that
// it replaces. A nil *Comparison is not known, which refuses.
type Comparison struct {
	Version   string   // of the release that is replaced
	Looser    []string // each limit that is looser, in words; the same words for the same limit
	Interface []string // each difference that a caller would notice
}

// CasesShown returns how many cases every engine of a release is shown to keep its limits in: the fewest of
// the engines with a passing parity report that counts, of each the most of its reports. It is 0 if there is
// none.
func CasesShown(r Release, claims []Claim) int {
	cs, _ := count(r, claims)
	fewest := 0
	for _, e := range r.Engines {
		most := 0
		for _, pass := range cs.findings(PredicateParity, r, e).passes {
			most = max(most, pass.Cases.Ran)
		}
		if most > 0 && (fewest == 0 || most < fewest) {
			fewest = most
		}
	}
	return fewest
}

// CountCases adds a line if the release is shown to keep its limits in fewer cases than the one that it
// replaces, or it is not known in how many that was. A limit on the worst case says less of fewer cases.
func (c *Comparison) CountCases(now, was int) {
	switch {
	case was == 0 && now > 0:
		c.Looser = append(c.Looser, fmt.Sprintf("cases: %d, and no report that counts says how many before", now))
	case now < was:
		c.Looser = append(c.Looser, fmt.Sprintf("cases: %d, were %d", now, was))
	}
}

// Located is a release in a repository.
type Located struct {
	Repository string
	Release    Release
}

// CompareReleases reads limits and interface of two releases and compares them. Errors: those of
// reading, CodeDigest among them; CodeInvalid if a document cannot be understood.
type CompareReleases func(ctx context.Context, now, was Located) (Comparison, error)

// Compares reports whether a requirement of the policy needs a [Comparison].
func (p Policy) Compares() bool {
	for _, name := range p.Require {
		if name == RequireNoLooser || name == RequireCompatibleInterface {
			return true
		}
	}
	return false
}

// judgeComparison decides a requirement that compares with the release that is replaced.
func (p Policy) judgeComparison(name string, r Release, claims []Claim) Requirement {
	req := Requirement{Name: name, Subject: "release"}
	switch {
	case p.Promotion.Replay || p.Promotion.Head == r.Digest && p.Promotion.Environment != "":
		req.Met, req.Detail = true, "it replaces nothing: it is there already"
	case p.Promotion.Environment == "" || p.Promotion.Head != "" && p.Promotion.Comparison == nil:
		req.Detail = "it was not compared with the release that it replaces"
	case p.Promotion.Head == "":
		req.Met, req.Detail = true, p.Promotion.Environment+" has no release yet"
	case name == RequireNoLooser:
		p.lift(&req, r, claims, p.Promotion.Comparison.Looser, "no limit is looser than in "+p.Promotion.Comparison.Version,
			"%[3]s looser than in %[1]s, which %[2]s has now: ")
	default:
		p.lift(&req, r, claims, p.Promotion.Comparison.Interface, "what calls "+p.Promotion.Comparison.Version+" can call it",
			"what calls %[1]s, which %[2]s has now, cannot call it: ")
	}
	return req
}

// lift decides a requirement by its lines. Those that standing approvals accept, word for word, do
// not count against the release. unmet is a format with the version and the environment that is
// compared with, and how many lines are left, as limits.
func (p Policy) lift(req *Requirement, r Release, claims []Claim, lines []string, met, unmet string) {
	var left []string
	standing := p.liftingApprovals(r, claims)
	for _, line := range lines {
		at := slices.IndexFunc(standing, func(g GivenApproval) bool { return slices.Contains(g.Accepts, line) })
		if at < 0 {
			left = append(left, line)
			continue
		}
		req.until = earlier(req.until, standing[at].ExpiresOn)
		if bundle := standing[at].Bundle; !slices.Contains(req.Evidence, bundle) {
			req.Evidence = append(req.Evidence, bundle)
		}
	}
	switch {
	case len(lines) == 0:
		req.Met, req.Detail = true, met
	case len(left) == 0:
		req.Met, req.Detail = true, "approved: "+strings.Join(lines, "; ")
	default:
		req.Detail = fmt.Sprintf(unmet, p.Promotion.Comparison.Version, p.Promotion.Environment, Count(len(left), "limit")) + strings.Join(left, "; ")
	}
}
