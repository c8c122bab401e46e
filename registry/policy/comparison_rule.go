package policy

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Compares reports whether a requirement of the policy needs a [Comparison].
func (p Policy) Compares() bool {
	return slices.ContainsFunc(p.Require, func(name string) bool { return name == RequireNoLooser || name == RequireCompatibleInterface })
}

// replacesNothing decides a requirement that compares with the release that is replaced where none is, or where it is not known how
// they compare. ok is false if they have to be compared.
func (j judging) replacesNothing(req *Requirement) (ok bool) {
	p := j.policy.Promotion
	switch {
	case p.Replay || p.Head == j.release.Digest && p.Environment != "":
		req.Met, req.Detail = true, "it replaces nothing: it is there already"
	case p.Environment == "" || p.Head != "" && p.Comparison == nil:
		req.Detail = "it was not compared with the release that it replaces"
	case p.Head == "":
		req.Met, req.Detail = true, p.Environment+" has no release yet"
	default:
		return false
	}
	return true
}

// judgeNoLooser decides whether a limit is looser than in the release that is replaced. Limits that cannot be compared count
// as looser.
func judgeNoLooser(j judging, req *Requirement) {
	if j.replacesNothing(req) {
		return
	}
	there := j.policy.Promotion.Comparison
	j.lift(req, there.Looser, "no limit is looser than in "+there.Version, "%[3]s looser than in %[1]s, which %[2]s has now: ")
	if len(there.Unshown) > 0 && !j.policy.parityRefuses() {
		req.deny("no passing report says in how many cases %s keeps its limits: run mlpromote verify", strings.Join(there.Unshown, ", "))
	}
}

// judgeCompatibleInterface decides whether what calls the release that is replaced can call this one.
func judgeCompatibleInterface(j judging, req *Requirement) {
	if j.replacesNothing(req) {
		return
	}
	there := j.policy.Promotion.Comparison
	j.lift(req, there.Interface, "what calls "+there.Version+" can call it", "what calls %[1]s, which %[2]s has now, cannot call it: ")
}

// lift decides a requirement by its lines. Those that standing approvals accept, word for word, do
// not count against the release. unmet is a format with the version and the environment that is
// compared with, and how many lines are left, as limits.
func (j judging) lift(req *Requirement, lines []string, met, unmet string) {
	var left []string
	standing, there := j.policy.liftingApprovals(j.release, j.claims), j.policy.Promotion
	for _, line := range lines {
		at := slices.IndexFunc(standing, func(g evidence.GivenApproval) bool { return slices.Contains(g.Accepts, line) })
		if at < 0 {
			left = append(left, line)
			continue
		}
		req.until = registry.Earlier(req.until, standing[at].ExpiresOn)
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
		req.Detail = fmt.Sprintf(unmet, there.Comparison.Version, there.Environment, registry.Count(len(left), "limit")) + strings.Join(left, "; ")
	}
}

// CasesShown returns how many cases each engine of a release is shown to keep its limits in: the most of
// its passing parity reports that count.
func CasesShown(r artifact.Release, claims []evidence.Claim) []EngineCases {
	cs, _ := evidence.Count(r, claims)
	var all []EngineCases
	for _, e := range r.Engines {
		shown := EngineCases{Label: e.Label(), Precision: e.Precision}
		for _, pass := range cs.Proofs(r, e).Passes {
			shown.Cases = max(shown.Cases, evidence.CasesOf(pass))
		}
		all = append(all, shown)
	}
	return all
}
