package pipeline

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// failures counts the reports by which an engine failed a limit on a rate, with the same limits and
// cases and on the same kind of machine: those are the draws of which one may be lucky. An engine
// that crashed, or of which little was known, had no draw; one that passes is not held to more
// when it is verified again.
func (v verification) failures(c candidate) int {
	accepted, _ := registry.Accept(v.release, v.claims)
	distinct := make(map[string]bool)
	for _, claim := range accepted {
		if claim.Subject != c.engine.Digest || claim.Statement.PredicateType != registry.PredicateParity {
			continue
		}
		var report registry.ParityReport
		if registry.DecodeSigned(claim.Statement.Predicate, &report) != nil {
			continue
		}
		if drew(report) && report.Limits.Names(v.release.Limits) &&
			report.Cases.Digest.Names(v.cases.ref.Digest) && report.Node.Kind() == v.node.Kind() {
			distinct[string(claim.Statement.Predicate)] = true
		}
	}
	return len(distinct)
}

// drew reports whether a report failed a limit on a rate.
func drew(report registry.ParityReport) bool {
	return slices.ContainsFunc(report.Checks, func(c registry.Check) bool {
		return (c.Misses != nil || c.Resampled) && c.Verdict == registry.VerdictFail
	})
}
