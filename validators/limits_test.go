package validators_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func TestExpandPreset(t *testing.T) {
	t.Parallel()
	snr, rtol := 30.0, 0.5
	limits, err := validators.ExpandPreset("", digits(), []string{"fp32", "int8"}, 600, validators.LimitOverrides{
		Outputs:  map[string]validators.OutputLimits{"logits": {RTol: &rtol, SNRdB: &validators.AtLeast{Min: snr}}},
		Accuracy: &validators.AccuracyLimit{Metric: validators.MetricTop1, Drop: &validators.AtMost{Max: 0.005}},
		Latency:  validators.LatencyLimits{P99: &validators.TimeAtMost{MaxNs: 20 * time.Millisecond}, Regression: &validators.AtMost{Max: 0.1}},
		MinCases: 16,
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := limits.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"accuracy":{"drop":{"max":0.005},"metric":"top1"},"confidence":0.95,"latency":{"p99":{"maxNs":20000000},"regression":{"max":0.1}},"minCases":16,"precisions":{` +
		`"fp32":{"outputs":{"best":{"equal":{"min":0.99}},"logits":{"caseError":{"max":0.001},"maxError":{"max":0.002},"rtol":0.5,"snrDb":{"min":30},"systematic":{"max":0.0002},"top1":{"min":0.99}}}},` +
		`"int8":{"outputs":{"best":{"equal":{"min":0.95}},"logits":{"caseError":{"max":0.8},"maxError":{"max":2.5},"rtol":0.5,"snrDb":{"min":30},"systematic":{"max":0.03},"top1":{"min":0.95}}}}},"v":1}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	got, err := validators.ParseLimits(data)
	if diff := cmp.Diff(limits, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if l, ok := got.For("int8", "logits"); !ok || l.Top1.Min != 0.95 {
		t.Errorf("int8 logits: %v %v", l, ok)
	}
	if _, ok := got.For("fp16", "logits"); ok {
		t.Error("fp16 has limits that nobody gave")
	}
}

func TestDefaultPresetPerPrecision(t *testing.T) {
	t.Parallel()
	plain, err := validators.ExpandPreset("default", digits(), validators.Precisions(), 600, validators.LimitOverrides{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := plain.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"bf16":{"outputs":{"best":{"equal":{"min":0.97}},"logits":{"caseError":{"max":0.15},"maxError":{"max":0.5},"snrDb":{"min":25},"systematic":{"max":0.05},"top1":{"min":0.97}}}}`,
		`"fp16":{"outputs":{"best":{"equal":{"min":0.98}},"logits":{"caseError":{"max":0.05},"maxError":{"max":0.1},"snrDb":{"min":40},"systematic":{"max":0.01},"top1":{"min":0.98}}}}`,
		`"fp8":{"outputs":{"best":{"equal":{"min":0.95}},"logits":{"caseError":{"max":0.8},"maxError":{"max":2.5},"snrDb":{"min":12},"systematic":{"max":0.08},"top1":{"min":0.95}}}}`,
		`"int4":{"outputs":{"best":{"equal":{"min":0.85}},"logits":{"caseError":{"max":1.2},"maxError":{"max":2.5},"snrDb":{"min":6},"systematic":{"max":0.15},"top1":{"min":0.85}}}}`,
		`"latency":{},"minCases":1,`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}

// Limits of numbers that do not hold for compressed engines are named, unless the spec says others for these.
func TestUnbound(t *testing.T) {
	t.Parallel()
	built := []string{"fp16", "int8", "fp16-compressed", "int4-compressed"}
	none := map[string]validators.OutputLimits{}
	for name, c := range map[string]struct {
		said map[string]map[string]validators.OutputLimits
		want string
	}{
		"nothing":       {nil, ""},
		"of int8, int4": {map[string]map[string]validators.OutputLimits{"int8": none, "int4": none}, ""},
		"of fp16": {map[string]map[string]validators.OutputLimits{"fp16": none},
			"what they say of fp16 does not hold for fp16-compressed, which has those of int8: for others, write precisions: {fp16-compressed: ...}"},
		"of its own": {map[string]map[string]validators.OutputLimits{"fp16": none, "fp16-compressed": none}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (validators.LimitOverrides{Precisions: c.said}).Unbound(built); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	limit := 3.0
	said := map[string]map[string]validators.OutputLimits{"int4": {"logits": {ATol: &limit}}}
	limits, err := validators.ExpandPreset("", digits(), []string{"fp32", "int4-compressed"}, 600, validators.LimitOverrides{Precisions: said})
	if err != nil {
		t.Fatal(err)
	}
	if got := limits.Precisions["int4-compressed"].Outputs["logits"].ATol; got == nil || *got != limit {
		t.Errorf("atol %v of int4-compressed, want what is said of int4", got)
	}
}

// Compressed engines have the limits of int8, with what is said of int8 and then of their own precision in them. What is said of
// fp32 is not for them: they compute another function. What is said of int4 is for those in int4, also where nothing else is in int4.
func TestExpandPresetOfCompressed(t *testing.T) {
	t.Parallel()
	const small = "fp32-compressed"
	atol := func(v float64) map[string]validators.OutputLimits {
		return map[string]validators.OutputLimits{"logits": {ATol: &v}}
	}
	for name, c := range map[string]struct {
		said map[string]map[string]validators.OutputLimits
		want float64
	}{
		"of int8":              {map[string]map[string]validators.OutputLimits{"int8": atol(0.5), "fp32": atol(0.1)}, 0.5},
		"of its own":           {map[string]map[string]validators.OutputLimits{small: atol(2), "fp32": atol(0.1)}, 2},
		"of both, and its own": {map[string]map[string]validators.OutputLimits{"int8": atol(0.5), small: atol(2)}, 2},
		"of another alone":     {map[string]map[string]validators.OutputLimits{"fp32": atol(0.1)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, err := validators.ExpandPreset("", digits(), []string{"fp32", "int8", small}, 600, validators.LimitOverrides{Precisions: c.said})
			if err != nil {
				t.Fatal(err)
			}
			got := 0.0
			if a := limits.Precisions[small].Outputs["logits"].ATol; a != nil {
				got = *a
			}
			if got != c.want {
				t.Errorf("got atol %v, want %v", got, c.want)
			}
			if plain := limits.Precisions[small].Outputs["logits"].SNRdB; *plain != *limits.Precisions["int8"].Outputs["logits"].SNRdB {
				t.Errorf("SNR %v, want that of int8", *plain)
			}
		})
	}
}

func TestExpandPresetRefuses(t *testing.T) {
	t.Parallel()
	expand := func(preset, precision string, o validators.LimitOverrides) error {
		_, err := validators.ExpandPreset(preset, digits(), []string{precision}, 600, o)
		return err
	}
	nan := math.NaN()
	checkInvalid(t, "preset", expand("lax", "fp32", validators.LimitOverrides{}), `limits preset "lax": want strict, default`)
	checkInvalid(t, "precision", expand("", "fp64", validators.LimitOverrides{}), `precision "fp64": want one of fp32`)
	checkInvalid(t, "output", expand("", "fp32", validators.LimitOverrides{Outputs: map[string]validators.OutputLimits{"logit": {}}}),
		`no output "logit": there are logits, best`)
	checkInvalid(t,
		"nan", expand("", "fp32", validators.LimitOverrides{Outputs: map[string]validators.OutputLimits{"best": {RTol: &nan}}}), `output "best": rtol NaN`)
	_, err := validators.ExpandPreset("", digits(), nil, 600, validators.LimitOverrides{})
	checkInvalid(t, "no precisions", err, "no precision has any")
}

const limitsJSON = `{"accuracy":{"drop":{"max":0.005},"metric":"top1"},"confidence":0.95,"latency":{"p50":{"maxNs":5},"regression":{"max":0.1}},"minCases":1,"precisions":{"int8":{"outputs":{"logits":{"cosine":{"min":0.99},"maxAbs":{"max":1},"rtol":0.1,"snrDb":{"min":20},"top1":{"min":0.99}}}}},"v":1}`

func TestParseLimitsRefuses(t *testing.T) {
	t.Parallel()
	if _, err := validators.ParseLimits([]byte(limitsJSON)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"v":1`, `"v":2`, "limits version 2: this program reads version 1"},
		{`"confidence":0.95,`, ``, "confidence 0: want more than 0.5"},
		{`"drop":{"max":0.005},`, ``, "accuracy: want one of drop, min, max, relative, regression"},
		{`"v":1`, `"v":1,"x":1`, `unknown field "x"`},
		{`"minCases":1`, `"minCases":0`, "minCases 0"},
		{`"int8":{"outputs":{`, `"fp32":{"outputs":{}},"int8":{"outputs":{`, "limits of fp32: no output has any"},
		{`"cosine":{"min":0.99},"maxAbs":{"max":1},"rtol":0.1,"snrDb":{"min":20},"top1":{"min":0.99}`, ``, `limits of int8, output "logits": no limit`},
		{`"cosine":{"min":0.99}`, `"cosine":{"min":1.5}`, "cosine.min 1.5: want a number from -1 to 1"},
		{`"cosine":{"min":0.99}`, `"cosine":{"max":0.99}`, `unknown field "max"`},
		{`"cosine":{"min":0.99}`, `"cosine":{}`, "not canonical"},
		{`"top1":{"min":0.99}`, `"top1":{"min":99}`, "top1.min 99: want a number from 0 to 1"},
		{`"rtol":0.1`, `"rtol":-1`, "rtol -1: want a finite number of at least 0"},
		{`"rtol":0.1`, `"rtol":1e999`, "limits.json"},
		{`"maxNs":5`, `"maxNs":0`, "latency limit of 0 ns"},
		{`"max":0.005`, `"max":5`, "accuracy.drop.max 5: want a number from 0 to 1"},
		{`"metric":"top1"`, `"metric":"best"`, `metric "best": want`},
		{`"rtol":0.1`, `"rtol":0.10`, "not canonical"},
		{`"rtol":0.1`, `"rtol":null`, "not canonical"},
	} {
		_, err := validators.ParseLimits([]byte(strings.Replace(limitsJSON, c.old, c.new, 1)))
		checkInvalid(t, fmt.Sprintf("%s -> %s", c.old, c.new), err, c.want)
	}
	_, err := validators.Limits{}.Encode()
	checkInvalid(t, "the zero Limits", err, "version 0")
}

func FuzzParseLimits(f *testing.F) {
	f.Add([]byte(limitsJSON))
	f.Add([]byte(`{"latency":{},"minCases":1,"precisions":{},"v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := validators.ParseLimits(data)
		if err != nil {
			checkInvalid(t, "parse", err, "")
			return
		}
		again, err := l.Encode()
		if err != nil || string(again) != string(data) {
			t.Errorf("%s, %v\nis not\n%s", again, err, data)
		}
	})
}

// A spec can turn off that each channel is measured by its own spread, for all precisions or for one.
func TestPerChannelIsTurnedOff(t *testing.T) {
	t.Parallel()
	boxes := validators.Interface{Outputs: []validators.TensorInfo{{Name: "boxes", Kind: validators.KindBoxes, DType: tensor.Float32,
		Shape: []validators.Dim{{Symbol: "batch"}, {Size: 10}, {Size: 4}}}}}
	set := func(on bool) map[string]validators.OutputLimits {
		return map[string]validators.OutputLimits{"boxes": {PerChannel: &on}}
	}
	quantized := func(on bool) map[string]map[string]validators.OutputLimits {
		return map[string]map[string]validators.OutputLimits{"int8": set(on)}
	}
	for name, c := range map[string]struct {
		overrides  validators.LimitOverrides
		fp32, int8 bool
	}{
		"nothing said":       {validators.LimitOverrides{}, true, true},
		"off":                {validators.LimitOverrides{Outputs: set(false)}, false, false},
		"off for one":        {validators.LimitOverrides{Precisions: quantized(false)}, true, false},
		"off, but for one":   {validators.LimitOverrides{Outputs: set(false), Precisions: quantized(true)}, false, true},
		"said as it is":      {validators.LimitOverrides{Outputs: set(true)}, true, true},
		"on and off for one": {validators.LimitOverrides{Outputs: set(true), Precisions: quantized(false)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, err := validators.ExpandPreset("", boxes, []string{"fp32", "int8"}, 600, c.overrides)
			if err != nil {
				t.Fatal(err)
			}
			for precision, want := range map[string]bool{"fp32": c.fp32, "int8": c.int8} {
				stored, err := json.Marshal(limits.Precisions[precision].Outputs["boxes"])
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(string(stored), `"perChannel":true`); got != want || strings.Contains(string(stored), "false") {
					t.Errorf("%s: stored as %s, want perChannel true: %t, and never false", precision, stored, want)
				}
			}
		})
	}
}
