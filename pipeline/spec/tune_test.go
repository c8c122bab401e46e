package spec_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

func names(variants []spec.Variant) string {
	var all []string
	for _, v := range variants {
		all = append(all, v.Name)
	}
	return strings.Join(all, " ")
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	for tune, want := range map[string]string{
		"": "fp32 int8 fp16 int8d int4 int8-channels int8-entropy",
		"tune: {variants: [{name: mine, quantize: {method: dynamic, per_channel: true}}, int8]}":       "fp32 int8 mine",
		"tune: {variants: [{name: mine, quantize: {method: dynamic}}], exclude: [[/conv1], [/a, /b]]}": "fp32 int8 int8-x1 int8-x2 mine mine-x1 mine-x2",
	} {
		s, err := load(t, small+tune+"\n")
		if err != nil {
			t.Fatal(err)
		}
		all := s.Candidates()
		if got := names(all); got != want {
			t.Errorf("%s: %s, want %s", tune, got, want)
		}
		if last := all[len(all)-1]; strings.HasSuffix(last.Name, "-x2") && !slices.Equal(last.Quantize.Exclude, []string{"/a", "/b"}) {
			t.Errorf("%s excludes %v", last.Name, last.Quantize.Exclude)
		}
	}
	s, err := load(t, strings.Replace(small, "calibration: calibration\n", "", 1)+"")
	if err == nil {
		t.Fatalf("int8 without calibration: %+v", s)
	}
	s, err = load(t, strings.Replace(change("calibration: calibration\n", ""), "[fp32, int8]", "[fp32]", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(s.Candidates()); got != "fp32 fp16 int8d int4" {
		t.Errorf("without calibration: %s", got)
	}
}

func TestTrying(t *testing.T) {
	t.Parallel()
	s, err := load(t, small)
	if err != nil {
		t.Fatal(err)
	}
	other := s.Trying(s.Candidates()[:3], []string{"linux-arm64"})
	if names(other.Variants) != "fp32 int8 fp16" || len(other.Targets) != 1 ||
		!slices.Equal(other.Targets[0].Variants, []string{"fp32", "int8", "fp16"}) {
		t.Errorf("%+v", other)
	}
	if len(s.Targets) != 3 || len(s.Targets[2].Variants) != 2 {
		t.Errorf("the spec itself was changed: %+v", s.Targets)
	}
}

func TestTuneProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"objective: {max: latency}":                                                 `unknown objective "latency": want throughput, accuracy`,
		"objective: {max: throughput, min: size}":                                   `objective has both max and min: want one`,
		"objective: {subject_to: {p99: 20}}":                                        `want a time of more than nothing with its unit`,
		"objective: {subject_to: {accuracy_drop: 1%}}":                              `accuracy needs right answers`,
		"objective: {subject_to: {accuracy_drop: 110%}}":                            `accuracy_drop 1.1: want from 0 to 100%`,
		"objective: {subject_to: {accuracy_drop: -1%}}":                             `accuracy_drop -0.01: want from 0 to 100%`,
		"tune: {exclude: [[]]}":                                                     `the list is empty: want names of nodes`,
		"tune: {variants: [{name: x, quantize: {method: dynamic, preset: mixed}}]}": `preset means nothing to method dynamic`,
		"tune: {variants: [{name: int8, quantize: {method: dynamic}}]}":             `two variants to try are called int8`,
	} {
		if _, err := load(t, small+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Nothing may be lost, or everything: both ends of the range are taken where there are labels.
func TestBoundsOfAccuracyDrop(t *testing.T) {
	t.Parallel()
	labelled := strings.Replace(small, "cases/", "{path: cases/, labels: l}", 1)
	for drop, want := range map[string]float64{"0%": 0, "100%": 1} {
		s, err := load(t, labelled+"objective: {subject_to: {accuracy_drop: "+drop+"}}\n")
		if err != nil || float64(*s.Objective.SubjectTo.AccuracyDrop) != want {
			t.Errorf("accuracy_drop %s: got %+v, error %v, want %v", drop, s, err, want)
		}
	}
}

// Only the list of variants changes, in whatever form it was written.
func TestReplaceVariants(t *testing.T) {
	t.Parallel()
	chosen := spec.Variant{Name: "int8d", Quantize: &spec.Quantize{Method: "dynamic"}}
	const want = "variants: [{name: int8d, quantize: {method: dynamic}}]"
	for name, c := range map[string]struct{ old, new string }{
		"a line":          {"variants: [fp32, int8]\n", want + "\n"},
		"with a comment":  {"variants: [fp32]   # \"all\" of them\n", want + "   # \"all\" of them\n"},
		"a list":          {"variants:\n  - fp32\n  # the small one\n  - {name: int8}\n", want + "\n"},
		"a list, comment": {"variants: # two\n- fp32\n- fp16\n", want + " # two\n"},
		"many lines":      {"variants: [\n  fp32,\n  int8,\n]\n", want + "\n"},
	} {
		head, tail := "# A spec.\nmodel: a\nversion: 1.0.0\nsource: m.onnx # mine\ncases: cases/\n\n# What to build\n",
			"\n# Where: here\ntargets: [linux/amd64] # \"any\"\n"
		got, err := spec.ReplaceVariants("mlpromote.yaml", []byte(head+c.old+tail), chosen)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(got) != head+c.new+tail {
			t.Errorf("%s:\n%s", name, got)
		}
		if got, err = spec.ReplaceVariants("mlpromote.yaml", []byte(head+"targets: [linux/amd64]\n"+strings.TrimSuffix(c.old,
			"\n")), chosen); err != nil || string(got) != head+"targets: [linux/amd64]\n"+c.new {
			t.Errorf("%s, last: %v\n%s", name, err, got)
		}
	}
	if _, err := spec.ReplaceVariants("f",
		[]byte("{model: a, version: 1.0.0, source: m.onnx, cases: c, variants: [fp32], targets: [linux/amd64]}"), chosen); err == nil {
		t.Error("a spec on one line was rewritten")
	}
	example := filepath.Join("..", "..", "examples", "digits", spec.File)
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	got, err := spec.ReplaceVariants(example, data, chosen)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "\n"+want+"\n\ntargets:\n") || strings.Count(string(got), "#") != strings.Count(string(data), "#") {
		t.Errorf("%s", got)
	}
}

// The lines of the variant that is written stay as they are, comments and all, and nothing
// is left of the others.
func TestReplaceVariantsKeepsItsLines(t *testing.T) {
	t.Parallel()
	static := spec.Variant{Name: "int8"}
	tuned := spec.Variant{Name: "mine", Quantize: &spec.Quantize{Method: "static", PerChannel: true}}
	for name, c := range map[string]struct {
		chosen   spec.Variant
		old, new string
	}{
		"the last": {static,
			"variants: # two\n  - fp32 # what it was\n\n  # small, and good enough:\n  # measured in May\n  - int8   # without per_channel\n",
			"variants: # two\n\n  # small, and good enough:\n  # measured in May\n  - int8   # without per_channel\n"},
		"the first":  {static, "variants:\n  # small\n  - int8\n  # large\n  - fp32\n", "variants:\n  # small\n  - int8\n"},
		"in between": {static, "variants:\n- fp32\n- int8 # this\n- fp16\n", "variants:\n- int8 # this\n"},
		"many lines": {tuned,
			"variants:\n  - fp32\n  - name: mine # ours\n    quantize:\n      # as the paper says\n      method: static\n      per_channel: true # all\n  # no good\n  - fp16\n", "variants:\n  - name: mine # ours\n    quantize:\n      # as the paper says\n      method: static\n      per_channel: true # all\n"},
		"in brackets":       {static, "variants: [ # two\n  fp32, # large\n  int8, # small\n]\n", "variants: [ # two\n  int8, # small\n]\n"},
		"no last line":      {static, "variants: [\n  fp32, # large\n  int8] # small\n", "variants: [int8]\n"},
		"one line":          {static, "variants: [fp32, int8] # two\n", "variants: [int8] # two\n"},
		"a line of two":     {static, "variants:\n  [fp32,\n  int8]\n", "variants: [int8]\n"},
		"another":           {static, "variants:\n  - fp32 # large\n  # floats\n  - fp16\n", "variants: [int8]\n"},
		"of the name alone": {static, "variants:\n  - fp32\n  - {name: int8, quantize: {method: dynamic}} # other\n", "variants: [int8]\n"},
		"said in full":      {static, "variants:\n  - fp32\n  - {name: int8, quantize: {method: static}} # in full\n", "variants:\n  - {name: int8, quantize: {method: static}} # in full\n"},
	} {
		head, tail := "model: a\nversion: 1.0.0\nsource: m.onnx\ncases: cases/\ncalibration: more/\n", "\n# Where\ntargets: [linux/amd64]\n"
		for _, tail := range []string{tail, ""} {
			front := head
			if tail == "" {
				front += "targets: [linux/amd64]\n"
			}
			got, err := spec.ReplaceVariants("mlpromote.yaml", []byte(front+c.old+tail), c.chosen)
			if err != nil || string(got) != front+c.new+tail {
				t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, front+c.new+tail)
			}
		}
	}
}

// Limits can be of a precision that only tune tries: they hold for what is tried, and a build, which has none of it, leaves them out.
func TestLimitsOfWhatIsTried(t *testing.T) {
	t.Parallel()
	const limits = "limits: {precisions: {fp16: {outputs: {logits: {atol: 0.25}}}}}\n"
	if _, err := load(t, small+limits); err == nil || !strings.Contains(err.Error(), `unknown precision of a variant "fp16"`) {
		t.Errorf("without tune: error %v, want an unknown precision", err)
	}
	s, err := load(t, small+limits+"tune: {variants: [fp16]}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.LimitOverrides().Precisions; len(got) != 0 {
		t.Errorf("of a build: %v, want none", got)
	}
	var names []string
	for _, target := range s.Targets {
		names = append(names, target.Name)
	}
	trying := s.Trying(s.Candidates(), names).LimitOverrides().Precisions["fp16"]["logits"]
	if trying.ATol == nil || *trying.ATol != 0.25 {
		t.Errorf("of what is tried: %+v, want atol 0.25", trying)
	}
}
