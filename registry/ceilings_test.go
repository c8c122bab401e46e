package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// enoughCases prove what the ceilings of a new registry ask of shares of cases.
const enoughCases = 120

// The rules of a new registry take every limit that a preset gives, whatever an output is and in every precision.
func TestPresetsKeepTheCeilingsOfANewRegistry(t *testing.T) {
	t.Parallel()
	es, err := environments.Parse("environments.yaml", environments.New())
	if err != nil {
		t.Fatal(err)
	}
	policy := registry.Policy{Require: []string{"ceilings"}, Ceilings: es.List[1].Ceilings}
	precisions := validators.Precisions()
	for _, numbers := range []string{"fp32", "fp16", "int8", "int4"} {
		precisions = append(precisions, registry.CompressedPrecision(numbers))
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
func refusedCeilings(t *testing.T, policy registry.Policy, preset, precision string, output validators.TensorInfo) string {
	t.Helper()
	said := validators.LimitOverrides{Accuracy: &validators.AccuracyLimit{Metric: "top1", Output: output.Name, Min: &validators.AtLeast{Min: 0.5}}}
	limits, err := validators.ExpandPreset(preset, validators.Interface{Outputs: []validators.TensorInfo{output}}, []string{precision}, enoughCases, said)
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	r.Engines = r.Engines[1:]
	r.Engines[0].Precision = precision
	pass := parity(r, r.Engines[0], 1, registry.VerdictPass, func(p *registry.ParityReport) {
		p.Rules, p.Checks = limits.V, checksOf(limits.Precisions[precision].Outputs[output.Name])
		p.Outputs = map[string]registry.OutputFigures{output.Name: {DType: string(output.DType), Kind: string(output.Kind), Few: output.Few()}}
	})
	if d := policy.Check(r, []registry.Claim{pass}); !d.Allowed() {
		return unmet(d)
	}
	return ""
}

// checksOf are those of the limits on output y.
func checksOf(o validators.OutputLimits) (checks []registry.Check) {
	for figure, least := range map[string]*validators.AtLeast{"cosine": o.Cosine, "top1": o.Top1, "snrDb": o.SNRdB, "equal": o.Equal, "close": o.Close} {
		if least != nil && (figure != "top1" || least.Min > 0) {
			checks = append(checks, registry.Check{Output: "y", Figure: figure, Limit: registry.Figure(least.Min), AtLeast: true, Verdict: registry.VerdictPass})
		}
	}
	for figure, most := range map[string]*validators.AtMost{"maxError": o.MaxError, "caseError": o.CaseError, "systematic": o.Systematic} {
		if most != nil {
			checks = append(checks, registry.Check{Output: "y", Figure: figure, Limit: registry.Figure(most.Max), Verdict: registry.VerdictPass})
		}
	}
	return checks
}

// Limits on numbers of 16 bits may be those of their own type, and no looser.
func TestCeilingsOfHalfPrecisionOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dtype    string
		maxError registry.Figure
		allowed  bool
	}{
		{"float16", 0.5, true}, {"float16", 0.6, false}, {"bfloat16", 1.5, true}, {"bfloat16", 1.6, false}, {"float32", 0.02, false},
	} {
		t.Run(fmt.Sprint(c.dtype, c.maxError), func(t *testing.T) {
			t.Parallel()
			policy := registry.Policy{Require: []string{"ceilings"}, Ceilings: registry.Ceilings{
				"fp32": {"maxError": 0.01, "cosine": 0.999}, "fp16": {"maxError": 0.5}, "bf16": {"maxError": 1.5, "snrDb": 18}}}
			r := sample()
			r.Engines = r.Engines[:1]
			for _, cosine := range []registry.Figure{0.999, 0.9} { // which fp16 does not bound, so that it stays as it is
				pass := parity(r, r.Engines[0], 1, registry.VerdictPass, func(p *registry.ParityReport) {
					p.Rules, p.Outputs = 2, map[string]registry.OutputFigures{"y": {DType: c.dtype, Kind: "embedding"}}
					p.Checks = []registry.Check{{Output: "y", Figure: "maxError", Limit: c.maxError, Verdict: registry.VerdictPass}, {Output: "y", Figure: "cosine", Limit: cosine, AtLeast: true, Verdict: registry.VerdictPass}}
				})
				want := c.allowed && cosine == 0.999
				if d := policy.Check(r, []registry.Claim{pass}); d.Allowed() != want {
					t.Errorf("cosine %v: allowed %t, want %t: %s", cosine, d.Allowed(), want, unmet(d))
				}
			}
		})
	}
}

// Ceilings on top1 and close are of outputs that have such a limit by what they are. A limit that a spec or a builder left out is none.
func TestCeilingsOfSharesOfCases(t *testing.T) {
	t.Parallel()
	figures := func(kind, dtype string, few bool) registry.OutputFigures {
		return registry.OutputFigures{Kind: kind, DType: dtype, Few: few}
	}
	for name, c := range map[string]struct {
		output registry.OutputFigures
		figure string // that the only check is of; none: no check
		limit  registry.Figure
		want   string
	}{
		"scores":                            {figures("scores", "float32", false), "top1", 0.85, ""},
		"too few best classes":              {figures("scores", "float32", false), "top1", 0.84, "a limit of 0.84 on top1, and 0.85 is the loosest allowed: set limits.outputs.NAME.top1"},
		"tokens without it":                 {figures("tokens", "float16", false), "", 0, "output y has no limit on top1"},
		"two scores":                        {figures("probability", "float32", true), "top1", 0.9, ""},
		"a kind that nobody knows":          {figures("", "float32", false), "", 0, "output y has no limit on top1"},
		"an embedding":                      {figures("embedding", "float32", false), "", 0, ""},
		"a number":                          {figures("value", "float32", true), "close", 0.9, ""},
		"a whole number that is a quantity": {figures("value", "int64", true), "close", 0.5, "a limit of 0.5 on close, and 0.9 is the loosest allowed: set limits.outputs.NAME.close"},
		"a number without it":               {figures("other", "float32", true), "", 0, "output y has no limit on close"},
		"a row of numbers":                  {figures("value", "float32", false), "", 0, ""},
		"a class":                           {figures("class", "int64", true), "", 0, ""},
		"whole numbers that are scores":     {figures("scores", "int32", false), "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := registry.Policy{Require: []string{"ceilings"}, Ceilings: registry.Ceilings{"int8": {"top1": 0.85, "close": 0.9}}}
			r := sample()
			r.Engines = r.Engines[1:]
			pass := parity(r, r.Engines[0], 1, registry.VerdictPass, func(p *registry.ParityReport) {
				p.Rules, p.Outputs = 2, map[string]registry.OutputFigures{"y": c.output}
				if c.figure != "" {
					p.Checks = []registry.Check{{Output: "y", Figure: c.figure, Limit: c.limit, AtLeast: true, Verdict: registry.VerdictPass}}
				}
			})
			d := policy.Check(r, []registry.Claim{pass})
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
		})
	}
}
