package pipeline

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
)

// judgeOutputs judges what was found by the limits, and writes it into the report.
func (v verification) judgeOutputs(ctx context.Context, c candidate, found parity.Result, outputs runOutputs, report *registry.ParityReport) error {
	measured := validators.Measured{Outputs: found.Outputs, Accuracy: found.Accuracy, Cases: found.Cases, Attempts: 1 + v.failures(c)}
	if err := v.compareCurrent(ctx, c, outputs, &measured); err != nil {
		return err
	}
	if measured.Current != nil {
		report.Current = &registry.CurrentAccuracy{Environment: v.next.environment, Release: registry.NewDigestSet(v.next.release),
			Engine: registry.NewDigestSet(v.current[c.engine.Label()].engine.Digest), Accuracy: *measured.Current}
	}
	judged := v.limits.Judge(c.engine.Precision, measured)
	report.Verdict, report.Reasons = judged.Verdict, judged.Reasons
	if v.limits.V > 1 {
		report.Rules, report.Attempts = v.limits.V, measured.Attempts
		report.Checks, report.Confidence = judged.Checks, registry.Figure(judged.Confidence)
	}
	return nil
}

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
		return c.Misses != nil && c.Verdict == registry.VerdictFail
	})
}
