package pipeline_test

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// enoughCases prove what the ceilings of a new registry ask of shares of cases.
const enoughCases = 120

// The default rules take every limit that a preset gives, whatever an output is and in every precision.
func TestPresetsKeepTheDefaultCeilings(t *testing.T) {
	t.Parallel()
	es, err := environments.Parse("environments.yaml", environments.Default())
	if err != nil {
		t.Fatal(err)
	}
	policy := policy.Policy{Require: []string{"ceilings"}, Ceilings: es.List[1].Ceilings}
	precisions := validators.Precisions()
	for _, numbers := range []string{"fp32", "fp16", "int8", "int4"} {
		precisions = append(precisions, artifact.CompressedPrecision(numbers))
	}
	outputs := possibleOutputs()
	for _, precision := range precisions {
		for _, preset := range validators.Presets() {
			for _, output := range outputs {
				if why := refusedCeilings(t, policy, preset, precision, output); why != "" {
					t.Errorf("%s, %s, %s %s %v: %s", preset, precision, output.Kind, output.DType, output.Shape, why)
				}
			}
		}
	}
}

// possibleOutputs are of every kind, type and number of values that counts.
func possibleOutputs() (all []validators.TensorInfo) {
	for _, kind := range append(validators.Kinds(), "") {
		for _, dtype := range []tensor.DType{tensor.Float64, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Uint8, tensor.Bool} {
			for _, width := range []int64{0, 1, 3, 10} {
				output := validators.TensorInfo{Name: "y", Kind: kind, DType: dtype, Shape: []validators.Dim{{Symbol: "batch"}}}
				if width > 0 {
					output.Shape = append(output.Shape, validators.Dim{Size: width})
				}
				if kind == "" {
					output.Kind, _ = validators.GuessKind(output, "")
				}
				if output.Kind.Check(output) == nil {
					all = append(all, output)
				}
			}
		}
	}
	return all
}

// refusedCeilings says why a policy refuses an engine that keeps the limits of a preset for an output.
func refusedCeilings(t *testing.T, policy policy.Policy, preset, precision string, output validators.TensorInfo) string {
	t.Helper()
	said := validators.LimitOverrides{Accuracy: &validators.AccuracyLimit{Metric: "top1", Output: output.Name, Min: &validators.AtLeast{Min: 0.5}}}
	limits, err := validators.ExpandPreset(preset, validators.Interface{Outputs: []validators.TensorInfo{output}}, []string{precision}, enoughCases, said)
	if err != nil {
		t.Fatal(err)
	}
	e := artifact.Engine{Digest: digest.FromString("engine"), Precision: precision, Reference: digest.FromString("reference"), Limits: digest.FromString("limits"), Sources: digest.FromString("sources"),
		Target: artifact.Target{V: 1, Name: "x86", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v1"}}}
	r := artifact.Release{Digest: digest.FromString("release"), Model: "m", Limits: e.Limits, Sources: e.Sources, Engines: []artifact.Engine{e}}
	report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass, Reference: evidence.NewDigestSet(e.Reference), Limits: evidence.NewDigestSet(e.Limits), Sources: evidence.NewDigestSet(e.Sources),
		Node: artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v1"}}}, Cases: evidence.CasesRun{Count: 10, Ran: 10},
		Rules: limits.V, Checks: checksOf(limits.Precisions[precision].Outputs[output.Name]),
		Outputs: map[string]evidence.OutputFigures{output.Name: {DType: string(output.DType), Kind: string(output.Kind), Few: output.Few()}}}
	predicate, err := registry.CanonicalJSON(report)
	if err != nil {
		t.Fatal(err)
	}
	pass := evidence.Claim{Bundle: digest.FromBytes(predicate), Subject: e.Digest, Signer: "verifier", Roles: []evidence.Role{evidence.RoleVerifier}, Key: evidence.KeyTrusted,
		Statement: evidence.Statement{Type: evidence.StatementType, PredicateType: evidence.PredicateParity, Predicate: predicate,
			Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(e.Digest)}}}}
	var why string
	for _, req := range policy.Check(r, []evidence.Claim{pass}).Unmet() {
		why += req.Detail
	}
	return why
}

// checksOf are those of the limits on output y.
func checksOf(o validators.OutputLimits) (checks []evidence.Check) {
	for figure, least := range map[string]*validators.AtLeast{"cosine": o.Cosine, "top1": o.Top1, "snrDb": o.SNRdB, "equal": o.Equal, "close": o.Close, "detections": o.Detections} {
		if least != nil && (figure != "top1" || least.Min > 0) {
			checks = append(checks, evidence.Check{Trial: evidence.TrialCases, Output: "y", Figure: figure, Limit: new(evidence.Figure(least.Min)), AtLeast: true, Verdict: evidence.VerdictPass})
		}
	}
	for figure, most := range map[string]*validators.AtMost{"maxError": o.MaxError, "caseError": o.CaseError, "systematic": o.Systematic, "quarterError": o.QuarterError} {
		if most != nil {
			checks = append(checks, evidence.Check{Trial: evidence.TrialCases, Output: "y", Figure: figure, Limit: new(evidence.Figure(most.Max)), Verdict: evidence.VerdictPass})
		}
	}
	return checks
}
