package cireport

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// made is provenance of an engine: inputs by name, and steps with options and keys.
func made(t *testing.T, inputs map[string]string, options, key, variant string) provenance {
	t.Helper()
	set := func(text string) evidence.DigestSet { return evidence.NewDigestSet(digest.FromString(text)) }
	var dependencies []map[string]any
	for name, text := range inputs {
		dependencies = append(dependencies, map[string]any{"name": name, "digest": set(text)})
	}
	step := map[string]any{"name": "compile", "digest": set(key), "annotations": map[string]any{"options": json.RawMessage(options)}}
	text, err := json.Marshal(map[string]any{
		"buildDefinition": map[string]any{"externalParameters": map[string]any{"variant": variant}, "resolvedDependencies": dependencies},
		"runDetails":      map[string]any{"byproducts": []any{step}},
	})
	var p provenance
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDiffersFrom(t *testing.T) {
	t.Parallel()
	inputs := map[string]string{"source": "a", "calibration": "b", "limits": "c", "cases 1.npy": "d", "repository": "e"}
	with := func(name, text string) map[string]string {
		all := map[string]string{name: text}
		for n, was := range inputs {
			if n != name {
				all[n] = was
			}
		}
		return all
	}
	before := made(t, inputs, `{"level": 1}`, "k", "int8")
	for name, c := range map[string]struct {
		after provenance
		want  []string
	}{
		"the model":                       {made(t, with("source", "x"), `{"level": 1}`, "l", "int8"), []string{"source"}},
		"a file that is new":              {made(t, with("asset vocab.txt", "x"), `{"level": 1}`, "l", "int8"), []string{"asset vocab.txt"}},
		"calibration and options":         {made(t, with("calibration", "x"), `{"level": 2}`, "l", "int8"), []string{"calibration", "options of compile"}},
		"the commit, and another machine": {made(t, with("repository", "x"), `{"level":1}`, "l", "int8"), []string{"driver or machine of compile"}},
		"the variant":                     {made(t, inputs, `{"level": 1}`, "l", "int4"), []string{"variant"}},
	} {
		if got := c.after.differsFrom(before); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if judged := made(t, with("limits", "x"), `{"level":1}`, "k", "int8"); !judged.endsAs(before) || len(judged.differsFrom(before)) != 0 {
		t.Errorf("what it is measured by: got %q, want nothing", judged.differsFrom(before))
	}
	if other := made(t, with("source", "x"), `{"level":1}`, "l", "int8"); other.endsAs(before) || (provenance{}).endsAs(provenance{}) {
		t.Error("another last step, or none, counts as the same one")
	}
	fewer := made(t, map[string]string{"source": "a"}, `{"level": 1}`, "l", "int8")
	if got := fewer.differsFrom(before); !slices.Equal(got, []string{"calibration"}) {
		t.Errorf("an input that is gone: got %q, want calibration", got)
	}
}
