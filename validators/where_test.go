package validators_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// encoder is a model with a mask and an output that it fits.
func encoder() validators.Interface {
	dims := func(symbols ...string) (shape []validators.Dim) {
		for _, s := range symbols {
			shape = append(shape, validators.Dim{Symbol: s})
		}
		return shape
	}
	return validators.Interface{
		V: validators.InterfaceVersion,
		Inputs: []validators.TensorInfo{
			{Name: "mask", DType: tensor.Int64, Shape: dims("batch", "seq")},
			{Name: "fixed", DType: tensor.Int64, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 16}}},
			{Name: "scalar", DType: tensor.Int64, Shape: []validators.Dim{}},
		},
		Outputs: []validators.TensorInfo{
			{Name: "logits", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 4}}},
			{Name: "tokens", DType: tensor.Float32, Shape: append(dims("batch", "tokens_1"), validators.Dim{Size: 8})},
			{Name: "rows", DType: tensor.Float32, Shape: dims("batch")},
		},
	}
}

func where(output, input string) validators.LimitOverrides {
	return validators.LimitOverrides{Outputs: map[string]validators.OutputLimits{output: {Where: input}}}
}

func TestWhereIsPartOfLimits(t *testing.T) {
	t.Parallel()
	rtol := 0.25
	overrides := where("tokens", "mask")
	overrides.Precisions = map[string]map[string]validators.OutputLimits{"fp16": {"tokens": {RTol: &rtol}}}
	limits, err := validators.ExpandPreset("", encoder(), []string{"fp32", "fp16"}, 600, overrides)
	if err != nil {
		t.Fatal(err)
	}
	data, err := limits.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"tokens":{"caseError":{"max":0.05},"maxError":{"max":0.1},"rtol":0.25,"snrDb":{"min":40},"systematic":{"max":0.01},"where":"mask"}`,
		`"tokens":{"caseError":{"max":0.001},"maxError":{"max":0.002},"snrDb":{"min":80},"systematic":{"max":0.0002},"where":"mask"}`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	again, err := validators.ParseLimits(data)
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := again.For("fp32", "tokens"); l.Where != "mask" {
		t.Errorf("limits of tokens %+v", l)
	}
}

func TestWhereRefuses(t *testing.T) {
	t.Parallel()
	expand := func(o validators.LimitOverrides) error {
		_, err := validators.ExpandPreset("", encoder(), []string{"fp32"}, 600, o)
		return err
	}
	checkInvalid(t, "output", expand(where("token", "mask")), `no output "token": there are logits, tokens, rows`)
	checkInvalid(t, "input", expand(where("tokens", "masc")),
		`output "tokens" counts where "masc" is not 0, and the model has no such input: there are mask, fixed, scalar`)
	checkInvalid(t, "rank", expand(where("rows", "mask")),
		`output "rows" of shape [batch] cannot count where input "mask" of shape [batch seq] is not 0`)
	checkInvalid(t, "size", expand(where("logits", "fixed")),
		`output "logits" of shape [batch 4] cannot count where input "fixed" of shape [batch 16] is not 0`)
	checkInvalid(t, "scalar", expand(where("logits", "scalar")), `input "scalar" of shape []`)
	checkInvalid(t, "precision", expand(validators.LimitOverrides{Precisions: map[string]map[string]validators.OutputLimits{"int8": {}}}),
		`no engine is of precision "int8": there are fp32`)
	checkInvalid(t, "output of precision",
		expand(validators.LimitOverrides{Precisions: map[string]map[string]validators.OutputLimits{"fp32": {"token": {}}}}), `no output "token"`)
	if err := expand(where("tokens", "mask")); err != nil {
		t.Errorf("symbols that may stand for one size: %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"rtol":0.1`, `"rtol":0.1,"top1":{"min":0.99},"where":""`, "not canonical"},
		{`"rtol":0.1`, `"rtol":0.1,"top1":{"min":0.99},"where":7`, "limits.json"},
		{`"rtol":0.1`, `"rtol":0.1,"top1":{"min":0.99},"where":"\n"`, "want the name of an input"},
	} {
		text := strings.Replace(strings.Replace(limitsJSON, `,"top1":{"min":0.99}`, "", 1), c.old, c.new, 1)
		_, err := validators.ParseLimits([]byte(strings.Replace(text, `,"snrDb":{"min":20}`, "", 1)))
		checkInvalid(t, c.new, err, c.want)
	}
	only := `{"confidence":0.95,"latency":{},"minCases":1,"precisions":{"fp32":{"outputs":{"logits":{"where":"mask"}}}},"v":1}`
	_, err := validators.ParseLimits([]byte(only))
	checkInvalid(t, "where alone", err, "no limit")
}

// A mask that lets nothing count proves nothing.
func TestJudgeWhereNothingCounts(t *testing.T) {
	t.Parallel()
	limits, err := validators.ExpandPreset("", encoder(), []string{"fp32"}, 3, where("tokens", "mask"))
	if err != nil {
		t.Fatal(err)
	}
	agreed := equalResult(3)
	found := map[string]tensor.Result{"logits": agreed, "rows": agreed, "tokens": {Cases: 3, CosineMin: 1}}
	verdict, reasons := judge(limits, "fp32", found, nil, 3)
	if verdict != evidence.VerdictUndecided || len(reasons) != 1 || reasons[0].Output != "tokens" ||
		!strings.Contains(reasons[0].Message, "input mask is 0 everywhere") {
		t.Errorf("verdict %s, reasons %+v", verdict, reasons)
	}
	found["tokens"] = agreed
	if verdict, reasons := judge(limits, "fp32", found, nil, 3); verdict != evidence.VerdictPass {
		t.Errorf("verdict %s, reasons %+v", verdict, reasons)
	}
}
