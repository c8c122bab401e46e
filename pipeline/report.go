package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// reasonShape is the code of reasons about an engine whose outputs have another shape or type than the reference's.
const reasonShape = "shape"

// head is what every report says about what was found since a beginning.
func (v verification) head(c candidate, began beginning) registry.ReportHead {
	return registry.ReportHead{
		StartedOn: began.StartedOn, FinishedOn: v.p.now().UTC(), History: registry.NewDigestSet(began.History),
		Limits: registry.NewDigestSet(v.release.Limits), Sources: registry.NewDigestSet(v.release.Sources),
		Reference: registry.NewDigestSet(v.reference.ref.Digest),
		Node:      v.node,
		Runtime: registry.RuntimeUsed{Name: c.tool.identity.Name, Version: c.tool.identity.Version,
			Library: registry.NewDigestSet(cmp.Or(c.tool.identity.LibraryDigest, c.tool.identity.Lock)), Host: hostPackages(c.tool.identity)},
		Settings: registry.SettingsOf(c.engine.Load),
		Tool:     v.p.Tool,
	}
}

// hostPackages are those of a Python that mlpromote did not install; nil for an install from a lock file, for an image, and
// for a compiler that a manifest describes.
func hostPackages(tool toolchain.Identity) *registry.HostPackages {
	if !tool.Adopted || tool.Image != "" || len(tool.Versions) == 0 {
		return nil
	}
	return &registry.HostPackages{Packages: registry.NewDigestSet(tool.Lock), Versions: tool.Versions}
}

// foundOut is what was found of an engine beside its report.
type foundOut struct {
	whole   map[string]tensor.Result // of each output, over all cases
	against validators.Findings      // why the report is no pass
	figures []byte                   // the file of per-case figures that the report names; nil for none
}

// parity compares the outputs of a candidate with the reference's. Outputs that cannot
// be compared at all, because their shape or dtype differs, are a failure and no error. It also returns
// what was found of each output, and of each case.
func (v verification) parity(ctx context.Context, c candidate, outputs runOutputs) (registry.ParityReport, foundOut, error) {
	var out foundOut
	limits := v.limits.Precisions[c.engine.Precision].Outputs
	report := registry.ParityReport{ReportHead: v.head(c, outputs.began(c.id, v.began)),
		Outputs: make(map[string]registry.OutputFigures)}
	report.Cases = v.casesRun()
	report.Providers, report.Cases.Earlier = withOptions(outputs.providers(c.id),
		c.engine.Providers), outputs.earlier[c.id]
	run := v.comparison(limits, outputs.dir(c.id))
	fault := v.withScores(ctx, &run)
	found, err := parity.Compare(ctx, run)
	switch {
	case errors.Is(err, tensor.ErrMismatch): // it stops there, so that no case was compared to its end
		out.against = validators.Failed(registry.Reason{Code: reasonShape,
			Message: err.Error() + ": the engine has another interface than the reference"})
	case ctx.Err() != nil:
		return registry.ParityReport{}, out, ctx.Err()
	case err != nil:
		return registry.ParityReport{}, out, cases.TensorError(err)
	default:
		for _, output := range v.iface.Outputs {
			compared := found.Outputs[output.Name]
			figures := parity.Figures(string(output.DType), compared)
			figures.Kind, figures.Few = string(output.Kind), output.Few()
			if prefix := registry.Figure(compared.Prefix); output.Kind == validators.KindTokens && compared.Top1Rows > 0 {
				figures.Prefix = &prefix
			}
			report.Outputs[output.Name] = figures
		}
		report.Cases.Ran, report.Accuracy = found.Cases, found.Accuracy
		if found.Accuracy != nil && v.limits.Accuracy.ByProgram() {
			report.Accuracy.Program = v.limits.Accuracy.Program
		}
		out.whole = found.Outputs
		if out.figures, out.against, err = v.judgeOutputs(ctx, c, found, fault, outputs, &report); err != nil {
			return report, out, err
		}
	}
	tied, err := judgeTied(c)
	out.against = slices.Concat(out.against, validators.Failed(validators.JudgeProviders(c.engine.Providers, report.Providers)...),
		validators.Failed(tied...))
	out.against.Fold(&report.ReportHead)
	report.Destination = v.destination(c)
	report.FinishedOn = v.p.now().UTC()
	return report, out, err
}

// judgeOutputs judges what was found by the limits, and writes it into the report. It returns the file
// of per-case figures that the report names, and why the engine does not pass.
func (v verification) judgeOutputs(ctx context.Context, c candidate, found parity.Result,
	fault string, outputs runOutputs, report *registry.ParityReport) ([]byte, validators.Findings, error) {
	measured := validators.Measured{Outputs: found.Outputs, Accuracy: found.Accuracy, Figures: found.Figures,
		Slices: found.Slices, Cases: found.Cases, AccuracyFault: fault, Attempts: 1 + v.failures(c)}
	var err error
	if found.Each.Current, err = v.compareCurrent(ctx, c, outputs, &measured); err != nil {
		return nil, nil, err
	}
	if measured.Current != nil {
		report.Current = &registry.CurrentAccuracy{Environment: v.next.environment, Release: registry.NewDigestSet(v.next.release),
			Engine: registry.NewDigestSet(v.current[c.engine.Label()].engine.Digest), Accuracy: *measured.Current}
	}
	judged := v.limits.Judge(c.engine.Precision, measured)
	report.Rules, report.Attempts = v.limits.V, measured.Attempts
	report.Checks, report.Confidence, report.Slices = judged.Checks, registry.Figure(judged.Confidence), judged.Slices
	figures, leftOut, err := found.Each.Marshal()
	if err != nil {
		return nil, nil, cases.TensorError(err)
	}
	report.CaseFigures = registry.NameCaseFigures(figures, leftOut)
	return figures, judged.Found, nil
}

// casesRun is the cases of the release, of which none ran yet.
func (v verification) casesRun() registry.CasesRun {
	return registry.CasesRun{
		Digest: registry.NewDigestSet(v.cases.ref.Digest), Golden: registry.NewDigestSet(v.golden.ref.Digest),
		Count: v.cases.set.Count, Origin: v.cases.set.Origin, Labelled: v.cases.set.Labels != "",
	}
}

// withOptions adds to the providers that ran an engine the options that were set for them.
func withOptions(shares []registry.ProviderShare, declared []registry.Provider) []registry.ProviderShare {
	for i := range shares {
		for _, p := range declared {
			if p.Name == shares[i].Name {
				shares[i].Options = p.Options
			}
		}
	}
	return shares
}

func (v verification) comparison(limits map[string]validators.OutputLimits, outputs string) parity.Run {
	run := parity.Run{
		Golden: v.golden.dir, Engine: outputs, Shards: v.golden.set.Shards, Copies: v.copies, Outputs: make(map[string]tensor.Options),
		Masks: parity.Masks{Dir: v.cases.dir, Shards: v.cases.set.Shards, Inputs: make(map[string]string)},
	}
	for _, output := range v.iface.Outputs {
		run.Outputs[output.Name] = limits[output.Name].Comparison()
		if where := limits[output.Name].Where; where != "" {
			run.Masks.Inputs[output.Name] = where
		}
	}
	run.Labels = v.labels()
	return run
}

// labels says what is compared with labels, and by which metric. Without labels, and where the
// limits have a metric that no output fits, it is the zero Labels, so that nothing is measured.
func (v verification) labels() parity.Labels {
	metric, output, ok, err := v.iface.Accuracy(v.limits.Accuracy)
	if v.cases.set.Labels == "" || !ok || err != nil {
		return parity.Labels{}
	}
	by := ""
	if a := v.limits.Accuracy; a != nil && a.Slices != nil {
		by = a.Slices.By
	}
	return parity.Labels{Slices: by, Dir: v.cases.dir, Tensor: v.cases.set.Labels, Output: output.Name, Shards: v.cases.set.Shards,
		Detections: v.limits.Accuracy.DetectedBy(),
		Metric:     metric, Probability: output.Kind == validators.KindProbability, Seed: seedOf(v.cases.ref.Digest)}
}

// seedOf is a seed that follows from content: bounds by a bootstrap are the same whenever the same
// cases are judged. It has 32 bits, which every reader of JSON keeps.
func seedOf(d registry.Digest) uint64 {
	sum := sha256.Sum256([]byte(d))
	return uint64(binary.BigEndian.Uint32(sum[:]))
}

// performance reports the latencies of a candidate, and judges them where limits ask.
func (v verification) performance(c candidate, outputs runOutputs, latencies measured) registry.PerformanceReport {
	reference := latencies.latency(referenceID)
	report := registry.PerformanceReport{
		ReportHead: v.head(c, v.began), Latency: latencies.latency(c.id),
		Warmup: timingWarmup, ReferenceLatency: &reference, Apart: latencies.apart[c.id],
		BudgetNs: latencies.budget.Nanoseconds(), TookNs: latencies.took.Nanoseconds()}
	fitness := latencies.fitnessFor(c, v.node, outputs.providers(c.id))
	report.Fitness = &fitness
	beside := latencies.beside[c.id]
	report.Bounds, report.Ratio = performance.Bounds(latencies.timings[c.id], v.limits.Confidence), beside.ratio
	if limit := v.limits.Latency.P99; limit != nil && report.Bounds != nil {
		over := above(latencies.timings[c.id], limit.MaxNs)
		report.Bounds.Over = &over
	}
	v.limits.JudgeLatency(report.Latency, beside.ratio, beside.fault, fitness).Fold(&report.ReportHead)
	return report
}

// above counts the timings above a limit.
func above(timings []int64, limit time.Duration) int {
	n := 0
	for _, t := range timings {
		if t > limit.Nanoseconds() {
			n++
		}
	}
	return n
}

// report signs and attaches what was found: the numbers for policy, and a summary
// for other tools.
func (v verification) report(ctx context.Context, e registry.Engine, found VerifiedEngine) (err error) {
	done := v.p.step("attach reports of " + e.Label())
	defer func() { done(string(found.Parity.Verdict), err) }()
	about := registry.StatementSubject{Name: v.release.Model, Digest: registry.NewDigestSet(e.Digest)}
	found.Parity.Reasons, found.Performance.Reasons = plainReasons(found.Parity.Reasons), plainReasons(found.Performance.Reasons)
	found.Parity.Consistency = plainConsistency(found.Parity.Consistency)
	to := registry.Attachment{Environment: v.environment,
		Model: v.release.Model, Release: v.release.Digest, Subject: e.Digest}
	for _, predicate := range []struct {
		kind string
		body any
	}{
		{registry.PredicateTestResult, v.summary(found)},
		{registry.PredicatePerformance, found.Performance},
		{registry.PredicateParity, found.Parity},
	} {
		to.Figures = nil
		if predicate.kind == registry.PredicateParity {
			to.Figures = found.figures
		}
		statement, err := registry.NewStatement(predicate.kind, predicate.body, about)
		if err != nil {
			return err
		}
		if err := v.p.attach(ctx, registry.RoleVerifier, statement, to); err != nil {
			return err
		}
	}
	return nil
}

// plainReasons are reasons as evidence may have them: they name outputs as the model does,
// and can quote what a tool said.
func plainReasons(reasons []registry.Reason) []registry.Reason {
	plain := slices.Clone(reasons)
	for i := range plain {
		for _, text := range []*string{&plain[i].Message, &plain[i].Code, &plain[i].Output, &plain[i].Figure} {
			*text = registry.PlainText(*text)
		}
	}
	return plain
}

// TestResult is the predicate https://in-toto.io/attestation/test-result/v0.1.
type TestResult struct {
	Result        string     `json:"result"`
	Configuration []Resource `json:"configuration"`
	PassedTests   []string   `json:"passedTests"`
	FailedTests   []string   `json:"failedTests"`
}

func (v verification) summary(e VerifiedEngine) TestResult {
	result := TestResult{Result: "PASSED", PassedTests: []string{},
		FailedTests: []string{}, Configuration: []Resource{
			{Name: "limits", Digest: e.Parity.Limits},
			{Name: "cases", Digest: e.Parity.Cases.Digest},
			{Name: "reference", Digest: e.Parity.Reference},
		}}
	failing := make(map[string]bool)
	for _, r := range slices.Concat(e.Parity.Reasons, e.Performance.Reasons) {
		failing[testName(r)] = true
	}
	for _, output := range v.iface.Outputs {
		if name := "parity/" + output.Name; !failing[name] && e.Parity.Cases.Ran > 0 {
			result.PassedTests = append(result.PassedTests, name)
		}
	}
	for name := range failing {
		result.FailedTests = append(result.FailedTests, name)
	}
	slices.Sort(result.FailedTests)
	if !e.passes() {
		result.Result = "FAILED"
	}
	return result
}

func testName(r registry.Reason) string {
	if r.Output != "" {
		return "parity/" + r.Output
	}
	return r.Code
}

// currentID names the i-th engine of the next environment among the engines of a run.
func currentID(i int) string { return fmt.Sprintf("current-%d", i) }
