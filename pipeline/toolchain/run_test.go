package toolchain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// The result of a run is one of each engine that was asked for, in that order, with a time of each run.
func TestRunResultIsOfWhatWasAsked(t *testing.T) {
	t.Parallel()
	asked := toolchain.RunOptions{Rounds: 2, Engines: []toolchain.RunEngine{{ID: "a"}, {ID: "b"}}}
	timed := func(cases int, a string) string {
		return fmt.Sprintf(`{"cases": %d, "engines": [{"id": "a", %s}, {"id": "b", "timings_ns": [1, 1]}]}`, cases, a)
	}
	for name, c := range map[string]struct {
		result string
		want   string // part of the error; empty: none
	}{
		"as asked":       {timed(1, `"load_ns": 3, "timings_ns": [2, 9]`), ""},
		"no cases":       {timed(0, `"timings_ns": []`), `engine "a": it has 0 timings of 0 cases`},
		"no times":       {timed(1, `"load_ns": 3`), `it has 0 timings of 1 cases: want a time for each case in each of 2 rounds`},
		"a round left":   {timed(1, `"timings_ns": [1]`), `it has 1 timings`},
		"more times":     {timed(1, `"timings_ns": [1, 1, 1]`), `it has 3 timings`},
		"other cases":    {timed(2, `"timings_ns": [1, 1]`), `it has 2 timings of 2 cases`},
		"no time at all": {timed(1, `"timings_ns": [5, 0]`), `a run took 0 ns`},
		"back in time":   {timed(1, `"timings_ns": [5, -5]`), `a run took -5 ns`},
		"a load back":    {timed(1, `"load_ns": -1, "timings_ns": [5, 5]`), `it loaded in -1 ns`},
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
