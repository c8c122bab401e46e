package verify

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
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// head is what every report says about what was found since a beginning.
func head(v Session, c run.Candidate, began Beginning) evidence.ReportHead {
	var runner evidence.DigestSet
	if c.Tool.Profile.OwnRunner || c.Tool.Served != nil {
		runner = evidence.NewDigestSet(c.Tool.Runtime.Lock)
	}
	return evidence.ReportHead{
		StartedOn: began.StartedOn, FinishedOn: v.Env.Time().UTC(), History: evidence.NewDigestSet(began.History),
		Limits: evidence.NewDigestSet(v.Release.Limits), Sources: evidence.NewDigestSet(v.Release.Sources),
		Reference: evidence.NewDigestSet(v.Reference.Ref.Digest),
		Node:      v.Node,
		Runtime: evidence.RuntimeUsed{Name: c.Tool.Runtime.Name, Version: c.Tool.Runtime.Version,
			Library: evidence.NewDigestSet(cmp.Or(c.Tool.Runtime.LibraryDigest, c.Tool.Runtime.Lock)), Runner: runner, Served: c.Tool.Served, Host: hostPackages(c.Tool.Runtime)},
		Settings: evidence.SettingsOf(c.Engine.Load),
		Tool:     v.Env.Tool,
	}
}

// hostPackages are those of a Python that mlpromote did not install; nil for an install from a lock file, for an image, and
// for a compiler that a manifest describes.
func hostPackages(tool toolchain.Identity) *evidence.HostPackages {
	if !tool.Adopted || tool.Image != "" || len(tool.Versions) == 0 {
		return nil
	}
	return &evidence.HostPackages{Packages: evidence.NewDigestSet(tool.Lock), Versions: tool.Versions}
}

// ParityDetails has the findings about an engine, and the figures that its report leaves out.
type ParityDetails struct {
	whole   map[string]tensor.Result // of each output, over all cases
	against validators.Findings      // why the report is no pass
	figures []byte                   // the file of per-case figures that the report names; nil for none
}

// Parity compares the outputs of a candidate with the reference's. Outputs that cannot
// be compared at all, because their shape or dtype differs, are a failure and no error. It also returns
// the figures of each output and of each case.
func Parity(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs) (evidence.ParityReport, ParityDetails, error) {
	var out ParityDetails
	limits := v.Limits.Precisions[c.Engine.Precision].Outputs
	report := evidence.ParityReport{ReportHead: head(v, c, outputs.began(c.ID, v.Began)),
		Outputs: make(map[string]evidence.OutputFigures)}
	report.Cases = casesRun(v)
	report.Providers, report.Cases.Earlier = withOptions(outputs.providers(c.ID),
		c.Engine.Providers), outputs.earlier[c.ID]
	run := comparison(v, limits, outputs.dir(c.ID))
	run.Groups = groups(v)
	fault := withScores(ctx, v, &run)
	found, err := parity.Compare(ctx, run)
	switch {
	case errors.Is(err, tensor.ErrMismatch): // it stops there, so that no case was compared to its end
		out.against = validators.Failed(evidence.Reason{Code: validators.ReasonShape,
			Message: err.Error() + ": the engine has another interface than the reference"})
	case ctx.Err() != nil:
		return evidence.ParityReport{}, out, ctx.Err()
	case err != nil:
		return evidence.ParityReport{}, out, cases.TensorError(err)
	default:
		for _, output := range v.Iface.Outputs {
			compared := found.Outputs[output.Name]
			figures := parity.Figures(string(output.DType), compared)
			figures.Kind, figures.Few = string(output.Kind), output.Few()
			if prefix := evidence.Figure(compared.Prefix); output.Kind == validators.KindTokens && compared.Top1Rows > 0 {
				figures.Prefix = &prefix
			}
			report.Outputs[output.Name] = figures
		}
		report.Cases.Ran, report.Accuracy = found.Cases, found.Accuracy
		if found.Accuracy != nil && v.Limits.Accuracy.ByProgram() {
			report.Accuracy.Program = v.Limits.Accuracy.Program
		}
		out.whole = found.Outputs
		if out.figures, out.against, err = judgeOutputs(ctx, v, c, found, fault, outputs, &report); err != nil {
			return report, out, err
		}
	}
	tied, err := judgeTied(c)
	out.against = slices.Concat(out.against, validators.Failed(validators.JudgeProviders(c.Engine.Providers, report.Providers)...),
		validators.Failed(tied...))
	out.against.Fold(&report.ReportHead)
	report.Destination = destinationOf(v, c)
	report.FinishedOn = v.Env.Time().UTC()
	return report, out, err
}

// judgeOutputs judges what was found by the limits, and writes it into the report. It returns the file
// of per-case figures that the report names, and why the engine does not pass.
func judgeOutputs(ctx context.Context, v Session, c run.Candidate, found parity.Result,
	fault string, outputs RunOutputs, report *evidence.ParityReport) ([]byte, validators.Findings, error) {
	measured := validators.Measured{Outputs: found.Outputs, Accuracy: found.Accuracy, Figures: found.Figures,
		Slices: found.Slices, Cases: found.Cases, AccuracyFault: fault, Attempts: 1 + failures(v, c)}
	var err error
	if found.Each.Current, err = compareCurrent(ctx, v, c, outputs, &measured); err != nil {
		return nil, nil, err
	}
	if measured.Current != nil {
		report.Current = &evidence.CurrentAccuracy{Environment: v.next.environment, Release: evidence.NewDigestSet(v.next.release),
			Engine: evidence.NewDigestSet(v.current[c.Engine.Label()].Engine.Digest), Accuracy: *measured.Current}
	}
	judged := v.Limits.Judge(c.Engine.Precision, measured)
	report.Rules, report.Attempts = v.Limits.V, measured.Attempts
	report.Checks, report.Confidence, report.Slices = judged.Checks, evidence.Figure(judged.Confidence), judged.Slices
	figures, leftOut, err := found.Each.Marshal()
	if err != nil {
		return nil, nil, cases.TensorError(err)
	}
	report.CaseFigures = evidence.NameCaseFigures(figures, leftOut)
	return figures, judged.Found, nil
}

// casesRun is the cases of the release, of which none ran yet.
func casesRun(v Session) evidence.CasesRun {
	return evidence.CasesRun{
		Digest: evidence.NewDigestSet(v.Cases.Ref.Digest), Golden: evidence.NewDigestSet(v.Golden.Ref.Digest),
		Count: v.Cases.Set.Count, Origin: v.Cases.Set.Origin, Labelled: v.Cases.Set.Labels != "",
	}
}

// withOptions adds to the providers that ran an engine the options that were set for them.
func withOptions(shares []evidence.ProviderShare, declared []artifact.Provider) []evidence.ProviderShare {
	for i := range shares {
		for _, p := range declared {
			if p.Name == shares[i].Name {
				shares[i].Options = p.Options
			}
		}
	}
	return shares
}

func comparison(v Session, limits map[string]validators.OutputLimits, outputs string) parity.Run {
	run := parity.Run{
		Golden: v.Golden.Dir, Engine: outputs, Shards: v.Golden.Set.Shards, Copies: v.copies, Outputs: make(map[string]tensor.Options),
		Masks: parity.Masks{Dir: v.Cases.Dir, Shards: v.Cases.Set.Shards, Inputs: make(map[string]string)},
	}
	for _, output := range v.Iface.Outputs {
		if where := limits[output.Name].Where; where != "" {
			run.Masks.Inputs[output.Name] = where
		}
		run.Outputs[output.Name] = limits[output.Name].Comparison(output)
	}
	run.Labels = labels(v)
	run.Detections, _, _ = v.Iface.Detections() // the interface was checked when it was read
	return run
}

// labels says what is compared with labels, and by which metric. Without labels, and where the
// limits have a metric that no output fits, it is the zero Labels, so that nothing is measured.
func labels(v Session) parity.Labels {
	metric, output, ok, err := v.Iface.Accuracy(v.Limits.Accuracy)
	if v.Cases.Set.Labels == "" || !ok || err != nil {
		return parity.Labels{}
	}
	by := ""
	if a := v.Limits.Accuracy; a != nil && a.Slices != nil {
		by = a.Slices.By
	}
	return parity.Labels{Slices: by, Dir: v.Cases.Dir, Tensor: v.Cases.Set.Labels, Output: output.Name, Shards: v.Cases.Set.Shards,
		Detections: v.Limits.Accuracy.DetectedBy(),
		Metric:     metric, Probability: output.Kind == validators.KindProbability, Seed: seedOf(v.Cases.Ref.Digest)}
}

// groups says by what the cases are grouped: by inputs, by labels, and by slices.
func groups(v Session) parity.Groups {
	g := parity.Groups{Dir: v.Cases.Dir, Shards: v.Cases.Set.Shards}
	for _, input := range v.Iface.Inputs {
		g.Tensors = append(g.Tensors, input.Name)
		if input.DType == validators.Text {
			g.Texts = append(g.Texts, input.Name)
		}
	}
	if v.Cases.Set.Labels != "" {
		g.Tensors = append(g.Tensors, v.Cases.Set.Labels)
	}
	if a := v.Limits.Accuracy; a != nil && a.Slices != nil && !slices.Contains(g.Tensors, a.Slices.By) {
		g.Tensors = append(g.Tensors, a.Slices.By)
	}
	return g
}

// seedOf is a seed that follows from content: bounds by a bootstrap are the same whenever the same
// cases are judged. It has 32 bits, which every reader of JSON keeps.
func seedOf(d registry.Digest) uint64 {
	sum := sha256.Sum256([]byte(d))
	return uint64(binary.BigEndian.Uint32(sum[:]))
}

// performanceOf reports the latencies of a candidate, and judges them where limits ask.
func performanceOf(v Session, c run.Candidate, outputs RunOutputs, latencies measured) evidence.PerformanceReport {
	reference := latencies.latency(run.ReferenceID)
	report := evidence.PerformanceReport{
		ReportHead: head(v, c, v.Began), Latency: latencies.latency(c.ID),
		Warmup: latencies.warmup, ReferenceLatency: &reference, Apart: latencies.apart[c.ID],
		BudgetNs: latencies.budget.Nanoseconds(), TookNs: latencies.took.Nanoseconds()}
	if c.Tool.Served != nil {
		bare := latencies.latency(bareID(c.ID))
		report.BareLatency = &bare
	}
	fitness := latencies.fitnessFor(c, v.Node, outputs.providers(c.ID))
	report.Fitness = &fitness
	beside := latencies.beside[c.ID]
	report.Bounds, report.Ratio = performance.Bounds(latencies.timings[c.ID], v.Limits.Confidence), beside.ratio
	if limit := v.Limits.Latency.P99; limit != nil && report.Bounds != nil {
		over := above(latencies.timings[c.ID], limit.MaxNs)
		report.Bounds.Over = &over
	}
	v.Limits.JudgeLatency(report.Latency, beside.ratio, beside.fault, fitness).Fold(&report.ReportHead)
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
func report(ctx context.Context, v Session, e artifact.Engine, found VerifiedEngine) (err error) {
	if s := found.Parity.Runtime.Served; s != nil && s.URL != "" {
		v.Env.Step("attach no report of "+e.Label())("nothing shows which bytes the server answered from", nil)
		return nil
	}
	done := v.Env.Step("attach reports of " + e.Label())
	defer func() { done(string(found.Parity.Verdict), err) }()
	about := evidence.StatementSubject{Name: v.Release.Model, Digest: evidence.NewDigestSet(e.Digest)}
	found.Parity.Reasons, found.Performance.Reasons = plainReasons(found.Parity.Reasons), plainReasons(found.Performance.Reasons)
	found.Parity.Checks = plainChecks(found.Parity.Checks)
	to := api.Attachment{Environment: v.Environment,
		Model: v.Release.Model, Release: v.Release.Digest, Subject: e.Digest}
	for _, predicate := range []struct {
		kind string
		body any
	}{
		{evidence.PredicateTestResult, summary(v, found)},
		{evidence.PredicatePerformance, found.Performance},
		{evidence.PredicateParity, found.Parity},
	} {
		to.Figures = nil
		if predicate.kind == evidence.PredicateParity {
			to.Figures = found.figures
		}
		statement, err := evidence.NewStatement(predicate.kind, predicate.body, about)
		if err != nil {
			return err
		}
		if err := v.Env.Attach(ctx, evidence.RoleVerifier, statement, to); err != nil {
			return err
		}
	}
	return nil
}

// plainReasons are reasons as evidence may have them: they name outputs as the model does,
// and can quote what a tool said.
func plainReasons(reasons []evidence.Reason) []evidence.Reason {
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
	Result        string         `json:"result"`
	Configuration []run.Resource `json:"configuration"`
	PassedTests   []string       `json:"passedTests"`
	FailedTests   []string       `json:"failedTests"`
}

func summary(v Session, e VerifiedEngine) TestResult {
	result := TestResult{Result: "PASSED", PassedTests: []string{},
		FailedTests: []string{}, Configuration: []run.Resource{
			{Name: "limits", Digest: e.Parity.Limits},
			{Name: "cases", Digest: e.Parity.Cases.Digest},
			{Name: "reference", Digest: e.Parity.Reference},
		}}
	failing := make(map[string]bool)
	for _, r := range slices.Concat(e.Parity.Reasons, e.Performance.Reasons) {
		failing[testName(r)] = true
	}
	for _, output := range v.Iface.Outputs {
		if name := "parity/" + output.Name; !failing[name] && e.Parity.Cases.Ran > 0 {
			result.PassedTests = append(result.PassedTests, name)
		}
	}
	for name := range failing {
		result.FailedTests = append(result.FailedTests, name)
	}
	slices.Sort(result.FailedTests)
	if !e.Passes() {
		result.Result = "FAILED"
	}
	return result
}

func testName(r evidence.Reason) string {
	if r.Output != "" {
		return "parity/" + r.Output
	}
	return r.Code
}

// currentID names the i-th engine of the next environment among the engines of a run.
func currentID(i int) string { return fmt.Sprintf("current-%d", i) }
