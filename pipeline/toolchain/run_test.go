package toolchain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// The result of a run is one of each engine that was asked for, in that order: no driver gives times to another engine.
func TestRunResultIsOfWhatWasAsked(t *testing.T) {
	t.Parallel()
	asked := toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "a"}, {ID: "b"}}}
	for name, c := range map[string]struct {
		result string
		want   string // part of the error; empty: none
	}{
		"as asked":       {`{"cases": 1, "engines": [{"id": "a", "load_ns": 3}, {"id": "b"}]}`, ""},
		"none":           {`{"cases": 1, "engines": []}`, `it is of the engines [], want one of each of ["a" "b"]`},
		"one too few":    {`{"engines": [{"id": "a"}]}`, `it is of the engines ["a"]`},
		"one too many":   {`{"engines": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}`, `it is of the engines ["a" "b" "c"]`},
		"twice":          {`{"engines": [{"id": "a"}, {"id": "a"}]}`, `it is of the engines ["a" "a"]`},
		"in other order": {`{"engines": [{"id": "b"}, {"id": "a"}]}`, `it is of the engines ["b" "a"]`},
		"of no name":     {`{"engines": [{}, {}]}`, `it is of the engines ["" ""]`},
		"no JSON":        {`{`, "result of run: "},
	} {
		got, err := toolchain.Outcome{Result: json.RawMessage(c.result)}.RunResult(asked)
		switch {
		case c.want == "" && (err != nil || len(got.Engines) != 2 || got.Engines[0].LoadNS != 3):
			t.Errorf("%s: %+v, error %v", name, got, err)
		case c.want != "" && (!registry.HasCode(err, registry.CodeInternal) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
