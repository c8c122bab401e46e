package registry

import (
	"cmp"
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
	// Unshown are the engines of the release of which no passing report counts: in how many cases they keep their limits is not known.
	Unshown []string
}

// EngineCases is how many cases one engine is shown to keep its limits in.
type EngineCases struct {
	Label     string
	Precision string
	Cases     int // 0: no passing parity report counts
}

// CasesShown returns how many cases each engine of a release is shown to keep its limits in: the most of
// its passing parity reports that count.
func CasesShown(r Release, claims []Claim) []EngineCases {
	cs, _ := count(r, claims)
	var all []EngineCases
	for _, e := range r.Engines {
		shown := EngineCases{Label: e.Label(), Precision: e.Precision}
		for _, pass := range cs.proofs(r, e).passes {
			shown.Cases = max(shown.Cases, casesOf(pass))
		}
		all = append(all, shown)
	}
	return all
}

// casesOf is in how many cases a report shows something of every output: a mask, or a reference that is NaN, can leave
// fewer than ran. Each output has the check that is of the most.
func casesOf(pass report) int {
	most := make(map[string]int)
	for _, c := range pass.Checks {
		if c.Output != "" {
			most[c.Output] = max(most[c.Output], c.Cases)
		}
	}
	shown := pass.Cases.Ran
	for _, cases := range most {
		shown = min(shown, cases)
	}
	return shown
}

// CountCases adds a line for each engine that is shown to keep its limits in fewer cases than the one of
// its label and precision in the release that is replaced, or if it is not known in how many that was. A limit on
// the worst case says less of fewer cases. An engine whose label is new is held against the one with
// the fewest of its precision, or else of all. One line stands for all engines if it is true of all. An engine
// without a passing report has no line: a report is missing, and no limit is looser.
func (c *Comparison) CountCases(now, was []EngineCases) {
	for _, e := range now {
		if e.Cases == 0 {
			c.Unshown = append(c.Unshown, e.Label)
		}
	}
	now = slices.DeleteFunc(slices.Clone(now), func(e EngineCases) bool { return e.Cases == 0 })
	lines := make([]string, len(now))
	for i, e := range now {
		lines[i] = fewerCases(e.Cases, casesBefore(e, was))
	}
	if len(slices.Compact(slices.Clone(lines))) == 1 && lines[0] != "" {
		c.Looser = append(c.Looser, "cases: "+lines[0])
		return
	}
	for i, line := range lines {
		if line != "" {
			c.Looser = append(c.Looser, fmt.Sprintf("cases of %s: %s", now[i].Label, line))
		}
	}
}

// casesBefore returns what an engine is held against; 0: it is not known.
func casesBefore(e EngineCases, was []EngineCases) int {
	precision, all := 0, 0
	for _, before := range was {
		if before.Label == e.Label && before.Precision == e.Precision {
			return before.Cases
		}
		if before.Cases == 0 {
			continue
		}
		if all == 0 || before.Cases < all {
			all = before.Cases
		}
		if before.Precision == e.Precision && (precision == 0 || before.Cases < precision) {
			precision = before.Cases
		}
	}
	return cmp.Or(precision, all)
}

// fewerCases says that an engine is shown in fewer cases than before, or is "".
func fewerCases(now, was int) string {
	switch {
	case was == 0:
		return fmt.Sprintf("%d, and no report that counts says how many before", now)
	case now < was:
		return fmt.Sprintf("%d, were %d", now, was)
	}
	return ""
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
		if unshown := p.Promotion.Comparison.Unshown; len(unshown) > 0 && !p.paritySaysSo() {
			req.deny("no passing report says in how many cases %s keeps its limits: run mlpromote verify", strings.Join(unshown, ", "))
		}
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
