package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// said checks that a spec has one problem with these words; none if they are empty.
func said(t *testing.T, text, want string) {
	t.Helper()
	_, err := load(t, text)
	if want == "" {
		if err != nil {
			t.Errorf("%s: got %v, want it accepted", text, err)
		}
		return
	}
	if err == nil {
		t.Errorf("%s: accepted, want a problem with %q", text, want)
		return
	}
	if got := problems(t, err); !strings.Contains(got, want) || strings.Contains(got, "\n") {
		t.Errorf("%s: got %q, want one problem with %q", text, got, want)
	}
}

// Figures of a variant are accepted up to their limits, and keys only where something reads them.
func TestBoundsOfQuantization(t *testing.T) {
	t.Parallel()
	variants := func(s string) string { return change("variants: [fp32, int8]", "variants: ["+s+"]") }
	static := func(keys string) string { return variants("{name: int8, quantize: {method: static, " + keys + "}}") }
	weights := func(keys string) string { return variants("{name: w, quantize: {method: weights, " + keys + "}}") }
	half := func(tolerance string) string {
		return variants("{name: half, quantize: {method: fp16, tolerance: {" + tolerance + "}}}")
	}
	aware := func(accuracy string) string {
		return strings.Replace(static("tool: nncf, accuracy_aware: true"), "cases/", "{path: cases/, labels: l}", 1) +
			"limits: {accuracy: {" + accuracy + "}}\n"
	}
	long := strings.Repeat("v", 115) // with 1.4.0 and x it makes a tag of 123 characters
	tagged := func(name string) string {
		return strings.Replace(variants("{name: "+name+", quantize: {method: fp16}}"),
			"targets: [linux/amd64/v3, linux/amd64, linux/arm64]", "targets: [{name: x, cpu: {arch: amd64}}]", 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"more than half":            {static("observer: percentile, percentile: 50.1%"), ""},
		"half":                      {static("observer: percentile, percentile: 50%"), "percentile 0.5: want"},
		"all":                       {static("observer: percentile, percentile: 100%"), ""},
		"more than all":             {static("observer: percentile, percentile: 100.1%"), "and at most 100%"},
		"two observers":             {static("observer: entropy, percentile: 99%"), "want observer percentile"},
		"4 bits":                    {weights("bits: 4"), ""},
		"5 bits":                    {weights("bits: 5"), "bits 5: want 4 or 8"},
		"8 bits":                    {weights("tool: nncf, bits: 8"), ""},
		"8 bits in blocks":          {weights("tool: nncf, bits: 8, block_size: 32"), "weights of 8 bits are made by tool nncf"},
		"the smallest block":        {weights("block_size: 16"), ""},
		"the largest block":         {weights("block_size: 256"), ""},
		"relative":                  {half("rtol: 0.1"), ""},
		"absolute":                  {half("atol: 0.1"), ""},
		"both are 0":                {half("rtol: 0, atol: 0"), "want rtol or atol"},
		"one cancels the other":     {half("rtol: 1, atol: -1"), "no less than 0"},
		"aware of top1":             {aware("metric: top1, drop: {max: 1%}"), ""},
		"aware of no drop":          {aware("metric: top1, min: 50%"), "accuracy_aware keeps the drop"},
		"aware of another metric":   {aware("metric: top5, drop: {max: 1%}"), "accuracy_aware keeps the drop"},
		"already int8":              {variants("{name: int8, quantize: {method: none}}"), ""},
		"already int4":              {variants("{name: int4, quantize: {method: none}}"), ""},
		"a tag of most characters":  {tagged(long), ""},
		"a tag of more":             {tagged(long + "v"), "want at most 123 characters, since they make a tag"},
		"unknown tool":              {variants("{name: d, quantize: {method: dynamic, tool: nnfc}}"), `unknown quantization tool "nnfc"`},
		"an own name, of int8":      {variants("{name: best, quantize: {method: dynamic}}"), ""},
		"the precision as the name": {variants("{name: int8, quantize: {method: dynamic}}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said(t, c.text, c.want)
		})
	}
}

// A target that cannot be is told once, for the first thing that is wrong with its machine.
func TestBoundsOfTargets(t *testing.T) {
	t.Parallel()
	targets := func(s string) string {
		return change("targets: [linux/amd64/v3, linux/amd64, linux/arm64]", "targets: ["+s+"]")
	}
	python := func(name, program string) string {
		return "{name: " + name + ", cpu: {arch: amd64}, toolchain: {name: openvino, python: " + program + "}}"
	}
	runner := func(label string) string {
		return targets("{name: x, cpu: {arch: amd64}, runner: \"" + label + "\"}")
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown os and level":          {targets("{name: x, os: linx, cpu: {arch: amd64, level: v9}}"), `unknown os "linx"`},
		"unknown architecture, a level": {targets("{name: x, cpu: {arch: arm46, level: v3}}"), `unknown architecture "arm46"`},
		"level of arm":                  {targets("{name: x, cpu: {arch: arm64, level: v3}}"), "is of amd64 processors only"},
		"unknown level":                 {targets("{name: x, cpu: {arch: amd64, level: v0}}"), `unknown level "v0"`},
		"the second feature":            {targets("{name: x, cpu: {arch: amd64, features: [avx512_vnni, -x]}}"), `feature "-x"`},
		"darwin":                        {targets("{name: x, os: darwin, cpu: {arch: arm64}}"), ""},
		"accelerator of iree":           {targets("{name: x, cpu: {arch: amd64}, toolchain: iree, accelerator: {vendor: nvidia, arch: sm_80}}"), ""},
		"one Python":                    {targets(python("a", "python3.12") + ", " + python("b", "python3.12")), ""},
		"two Pythons":                   {targets(python("a", "python3.12") + ", " + python("b", "python3.13")), "asks for another Python"},
		"two Pythons, and a bad name":   {targets(python("a", "python3.12") + ", " + python("X", "python3.13")), "asks for another Python"},
		"runner":                        {runner("self-hosted.gpu_1"), ""},
		"runner of 64":                  {runner(strings.Repeat("r", 64)), ""},
		"runner of 65":                  {runner(strings.Repeat("r", 65)), "want the label of a CI runner"},
		"runner with an expression":     {runner("${{ x }}"), "want the label of a CI runner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said(t, c.text, c.want)
		})
	}
}

// Other sections at the limits of what they may say.
func TestBoundsOfSections(t *testing.T) {
	t.Parallel()
	limits := func(s string) string { return small + "limits: {" + s + "}\n" }
	loss := func(amount string) string { return limits("latency: {regression: {max: " + amount + "}}") }
	for name, c := range map[string]struct{ text, want string }{
		"the longest reason":            {small + "reference: {accept: " + strings.Repeat("a", 1000) + "}\n", ""},
		"recorded cases with a seed":    {change("cases/", "{path: cases/, seed: 1}"), "cases has both path and generate"},
		"one value":                     {change("cases: cases/", "cases: {generate: 1, inputs: {x: {min: 1, max: 1}}}"), ""},
		"max without min":               {change("cases: cases/", "cases: {generate: 1, inputs: {x: {max: 1}}}"), "want min and max, or values"},
		"an output of nothing":          {small + "outputs: {y: {}}\n", `unknown kind ""`},
		"labels alone":                  {small + "outputs: {y: {labels: [a, b]}}\n", ""},
		"unknown kind":                  {small + "outputs: {y: {kind: scorse}}\n", `unknown kind "scorse" (did you mean "scores"?)`},
		"an input of nothing":           {small + "inputs: {x: {}}\n", "want features: the names of its features"},
		"confidence of more than half":  {limits("confidence: 50.1%"), ""},
		"confidence of nearly all":      {limits("confidence: 99.9%"), ""},
		"consistency of nothing":        {limits("consistency: {}"), "consistency asks for nothing"},
		"consistency that is required":  {limits("consistency: {required: true}"), ""},
		"consistency of rare faults":    {limits("consistency: {rare: 2}"), ""},
		"consistency of all requests":   {limits("consistency: {rare: 1}"), "rare 1: want 2 to 100000"},
		"consistency of too many":       {limits("consistency: {rare: 100001}"), "rare 100001: want 2 to 100000"},
		"consistency without jitter":    {limits("consistency: {jitter: none}"), ""},
		"consistency with other jitter": {limits("consistency: {jitter: some}"), `unknown jitter "some"`},
		"no loss of time":               {loss("0"), ""},
		"a loss with a space":           {loss(`"5 %"`), ""},
		"a loss without end":            {loss("inf%"), "want a number, or one in percent"},
		"a loss in hexadecimal":         {loss("0x10%"), "want a number, or one in percent"},
		"a loss that is a sum":          {loss("1-2%"), "want a number, or one in percent"},
		"a loss in percent of percent":  {loss("5%%"), "want a number, or one in percent"},
		"no cases":                      {limits("min_cases: 0"), ""},
		"cases in a missing table":      {change("cases: cases/", "cases: none.csv"), "no such file or folder"},
		"cases in a missing archive":    {change("cases: cases/", "cases: none.npz"), "no such file or folder"},
		"budget of an unknown tool":     {small + "budgets: {nnfc: {cores: 1}}\n", `unknown toolchain "nnfc" (did you mean "nncf"?)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said(t, c.text, c.want)
		})
	}
}

// A variant says how its engines are loaded; what it leaves out, the target says.
func TestLoadingOfVariantAndTarget(t *testing.T) {
	t.Parallel()
	const level = "graph_optimization_level"
	options := func(required bool, pairs ...string) *spec.Loading {
		l := &spec.Loading{Options: spec.Settings{}, Required: required}
		for i := 0; i < len(pairs); i += 2 {
			l.Options[pairs[i]] = pairs[i+1]
		}
		return l
	}
	for name, c := range map[string]struct {
		target, variant *spec.Loading
		level, threads  string
		required        bool
	}{
		"of the target":            {options(false, level, "basic"), nil, "basic", "", false},
		"of the variant":           {nil, options(false, level, "basic"), "basic", "", false},
		"the variant goes first":   {options(false, level, "basic", "intra_op_num_threads", "2"), options(false, level, "disable_all"), "disable_all", "2", false},
		"the target requires it":   {options(true, level, "basic"), options(false), "basic", "", true},
		"the variant requires it":  {options(false, level, "basic"), options(true), "basic", "", true},
		"neither says anything":    {options(false), options(false), "", "", false},
		"the target has something": {options(false, "intra_op_num_threads", "1"), options(false), "", "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := spec.Target{Toolchain: spec.Toolchain{Name: "onnxruntime"}, Load: c.target}
			got, err := target.LoadProfile(spec.Variant{Load: c.variant})
			if err != nil {
				t.Fatal(err)
			}
			if nothing := c.level+c.threads == "" && !c.required; nothing != (got == nil) {
				t.Fatalf("got %+v, want a profile: %t", got, !nothing)
			}
			if got == nil {
				return
			}
			if got.Required != c.required {
				t.Errorf("required %t, want %t", got.Required, c.required)
			}
			for key, want := range map[string]string{level: c.level, "intra_op_num_threads": c.threads} {
				if value := got.Options[key]; value != want {
					t.Errorf("%s is %q, want %q", key, value, want)
				}
			}
		})
	}
}

// The kind of an output must be one that it can have, and names must be of inputs and outputs that there are.
func TestCheckInterfaceKinds(t *testing.T) {
	t.Parallel()
	batch := validators.Dim{Symbol: "batch"}
	model := validators.Interface{
		Inputs:  []validators.TensorInfo{{Name: "x", DType: "float32", Shape: []validators.Dim{batch, {Size: 2}}}},
		Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: []validators.Dim{batch, {Size: 4}}}},
	}
	for name, c := range map[string]struct{ section, want string }{
		"fits":          {"outputs: {y: {kind: scores}}", ""},
		"does not fit":  {"outputs: {y: {kind: class}}", "8:21 "},
		"unknown":       {"outputs: {z: {kind: scores}}", `8:11 unknown output "z"`},
		"unknown input": {"inputs: {z: {features: [a, b]}}", `8:10 unknown input "z"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, small+c.section+"\n")
			if err != nil {
				t.Fatal(err)
			}
			err = s.CheckInterface(model)
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v, want it accepted", err)
				}
				return
			}
			if got := problems(t, err); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one problem that begins with %q", got, c.want)
			}
		})
	}
}

// What is quantized already is not quantized in other ways; what is named is not tried twice.
func TestCandidatesOfQuantizedSource(t *testing.T) {
	t.Parallel()
	s, err := load(t, change("variants: [fp32, int8]", "variants: [{name: int8, quantize: {method: none}}]"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("int8", names(s.Candidates())); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

// Precisions are listed once each, in the order of the variants.
func TestPrecisions(t *testing.T) {
	t.Parallel()
	s, err := load(t, change("variants: [fp32, int8]",
		"variants: [fp16, fp32, {name: half, quantize: {method: fp16}}, {name: d, quantize: {method: dynamic}}, int8]"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fp16", "fp32", "int8"}, s.Precisions()); diff != "" {
		t.Errorf("precisions (-want +got):\n%s", diff)
	}
}

// A file that cannot be read is a failure of the machine, and no mistake in the spec.
func TestLoadUnreadable(t *testing.T) {
	t.Parallel()
	if _, err := spec.Load("a\x00b", spec.Options{}); registry.CodeOf(err) != registry.CodeInternal {
		t.Errorf("got %v, want CodeInternal", err)
	}
}

// A draft shortens the name of a model to 100 characters, and counts the kinds that it leaves out.
func TestBoundsOfDrafts(t *testing.T) {
	t.Parallel()
	draft := func(t *testing.T, o spec.DraftOptions) string {
		t.Helper()
		text, err := spec.Draft(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Run("name", func(t *testing.T) {
		t.Parallel()
		for length, want := range map[int]string{99: strings.Repeat("a", 99), 100: strings.Repeat("a", 100), 101: strings.Repeat("a", 100)} {
			if text := draft(t, spec.DraftOptions{Source: strings.Repeat("a", length) + ".onnx"}); !strings.Contains(text, "model: "+want+"\n") {
				t.Errorf("a file name of %d characters: got\n%swant model: %s", length, text, want)
			}
		}
	})
	t.Run("kinds", func(t *testing.T) {
		t.Parallel()
		for count, want := range map[int]bool{6: false, 7: true} {
			var kinds []spec.DraftedKind
			for i := range count {
				kinds = append(kinds, spec.DraftedKind{Output: string(rune('a' + i)), Guess: validators.Guess{Kind: validators.KindState, Why: "past"}})
			}
			if text := draft(t, spec.DraftOptions{Source: "m.onnx", Kinds: kinds}); strings.Contains(text, "shows 1 more") != want {
				t.Errorf("%d outputs: got\n%swant it to count more: %t", count, text, want)
			}
		}
	})
	t.Run("labels and accuracy", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			labels, accuracy string
			want             bool
		}{
			"both": {"label", "{metric: top1}", true}, "no labels": {"", "{metric: top1}", false}, "no accuracy": {"label", "", false},
		} {
			text := draft(t, spec.DraftOptions{Source: "m.onnx", Cases: "cases", Labels: c.labels, Accuracy: c.accuracy})
			if strings.Contains(text, "limits: {accuracy: ") != c.want || strings.Contains(text, "labels: label") != (c.labels != "") {
				t.Errorf("%s: got\n%swant a limit: %t", name, text, c.want)
			}
		}
	})
	t.Run("formats", func(t *testing.T) {
		t.Parallel()
		for want, o := range map[string]spec.DraftOptions{
			"source: m.onnx\n":                    {Source: "m.onnx", Format: spec.FormatONNX},
			"source: {path: m, format: tflite}\n": {Source: "m", Format: spec.FormatTFLite},
			"source: {path: m, format: skops, trust: {types: [a.B, \"c d\"]}}\n": {
				Source: "m", Format: spec.FormatSkops, Trusted: []string{"a.B", "c d"}},
		} {
			if text := draft(t, o); !strings.Contains(text, want) {
				t.Errorf("got\n%swant %s", text, want)
			}
		}
	})
}
