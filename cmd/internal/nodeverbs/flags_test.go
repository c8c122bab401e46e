package nodeverbs

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// The hint names the runtime to give where that alone is missing, of the best candidate for which it is so.
func TestRuntimeHint(t *testing.T) {
	t.Parallel()
	const ort, cpu = "runtimes.onnxruntime: needs >= 1.30.0, has none", "cpu.level: needs v4, has v3"
	for name, c := range map[string]struct {
		reasons [][]string // of candidates a, b and so on
		given   *registry.Runtime
		want    string // part of the hint; empty: there is none
	}{
		"only a runtime":         {reasons: [][]string{{ort}}, want: "a lacks only onnxruntime >= 1.30.0: if the node has it, say so with --runtime onnxruntime:1.30.0;"},
		"of the second":          {reasons: [][]string{{cpu, ort}, {ort}}, want: "b lacks only onnxruntime"},
		"an exact version":       {reasons: [][]string{{"runtimes.iree: needs 3.10.0, has none"}}, want: "--runtime iree:3.10.0;"},
		"a range":                {reasons: [][]string{{"runtimes.x: needs >= 1.2 and < 2, has none"}}, want: "--runtime x:VERSION;"},
		"two runtimes":           {reasons: [][]string{{ort, "runtimes.cuda: needs >= 13.0, has none"}}, want: "--runtime FILE"},
		"another version":        {reasons: [][]string{{"runtimes.onnxruntime: needs >= 1.30.0, has 1.29.0"}}},
		"something else as well": {reasons: [][]string{{ort, cpu}}},
		"a runtime was given":    {reasons: [][]string{{ort}}, given: &registry.Runtime{}},
		"no candidates":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answer registry.Resolution
			for i, reasons := range c.reasons {
				answer.Candidates = append(answer.Candidates, registry.Candidate{Label: string(rune('a' + i)), Reasons: reasons})
			}
			err := withRuntimeHint(registry.Errorf(registry.CodeNoEngine, "no engine"), registry.ResolveQuery{Runtime: c.given}, answer)
			hints := strings.Join(registry.Hints(err), "\n")
			if !registry.HasCode(err, registry.CodeNoEngine) || (hints != "") != (c.want != "") || !strings.Contains(hints, c.want) {
				t.Errorf("error %v with the hint %q, want %q in it", err, hints, c.want)
			}
		})
	}
}

// What a candidate misses is read back from the text that a mismatch has.
func TestMissingRuntimes(t *testing.T) {
	t.Parallel()
	lacks := registry.Mismatch{Requirement: "runtimes.onnxruntime", Need: ">= 1.30.0"}
	got := registry.Candidate{Reasons: []string{lacks.String()}}.MissingRuntimes()
	if len(got) != 1 || got["onnxruntime"] != lacks.Need {
		t.Errorf("of %q is missing %v, want onnxruntime with %q", lacks, got, lacks.Need)
	}
}
