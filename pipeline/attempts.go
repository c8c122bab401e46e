package pipeline

import (
	"context"

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

// failures counts the reports that an engine did not pass, with the same limits and cases and on
// the same kind of machine. An engine that passes is not held to more when it is verified again.
func (v verification) failures(c candidate) int {
	accepted, _ := registry.Accept(v.release, v.claims)
	n := 0
	for _, claim := range accepted {
		if claim.Subject != c.engine.Digest || claim.Statement.PredicateType != registry.PredicateParity {
			continue
		}
		var report registry.ParityReport
		if registry.DecodeSigned(claim.Statement.Predicate, &report) != nil {
			continue
		}
		if report.Verdict != registry.VerdictPass && report.Limits.Names(v.release.Limits) &&
			report.Cases.Digest.Names(v.cases.ref.Digest) && report.Node.Kind() == v.node.Kind() {
			n++
		}
	}
	return n
}
