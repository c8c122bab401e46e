package nodeverbs

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// The hint names the runtime to give where that alone is missing, of the best candidate for which it is so.
func TestRuntimeHint(t *testing.T) {
	t.Parallel()
	type lacks = map[string]string // runtimes, if that is all; nil: something else too
	ort := lacks{"onnxruntime": ">= 1.30.0"}
	for name, c := range map[string]struct {
		missing []lacks // of candidates a, b and so on
		given   *artifact.Runtime
		want    string // part of the hint; empty: there is none
	}{
		"only a runtime":         {missing: []lacks{ort}, want: "a lacks only onnxruntime >= 1.30.0, which the node does not declare: if it has it, name it with --runtime onnxruntime:1.30.0;"},
		"of the second":          {missing: []lacks{nil, ort}, want: "b lacks only onnxruntime"},
		"an exact version":       {missing: []lacks{{"iree": "3.10.0"}}, want: "--runtime iree:3.10.0;"},
		"a range":                {missing: []lacks{{"x": ">= 1.2 and < 2"}}, want: "--runtime x:VERSION;"},
		"two runtimes":           {missing: []lacks{{"onnxruntime": ">= 1.30.0", "cuda": ">= 13.0"}}, want: "--runtime FILE"},
		"something else as well": {missing: []lacks{nil}},
		"a runtime was given":    {missing: []lacks{ort}, given: &artifact.Runtime{}},
		"no candidates":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answer api.Resolution
			for i, missing := range c.missing {
				answer.Candidates = append(answer.Candidates, api.Candidate{Label: string(rune('a' + i)), MissingRuntimes: missing})
			}
			err := withRuntimeHint(registry.Errorf(registry.CodeNoEngine, "no engine"), api.ResolveQuery{Runtime: c.given}, answer)
			hints := strings.Join(registry.Hints(err), "\n")
			if !registry.HasCode(err, registry.CodeNoEngine) || (hints != "") != (c.want != "") || !strings.Contains(hints, c.want) {
				t.Errorf("error %v with the hint %q, want %q in it", err, hints, c.want)
			}
		})
	}
}
