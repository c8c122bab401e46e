package build

import (
	"fmt"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Records that a compiler leaves in the folder for them are no files of the engine; a given record comes first.
func TestTakeRecords(t *testing.T) {
	t.Parallel()
	files := []toolchain.OutputFile{{Name: "model.bin"}, {Name: toolchain.TuningFolder + "/a.json"}, {Name: toolchain.TuningFolder + "x"}}
	for _, given := range []*plan.Tuning{nil, {Input: toolchain.Input{Name: "given.json", Size: 7}}} {
		var e BuiltEngine
		e.Engine.Target.Name = "x"
		e.takeRecords(given, files)
		names := func() (all []string) {
			for _, r := range e.records {
				all = append(all, fmt.Sprintf("%s %t %t %s", r.file.Name, r.settled, r.given != nil, r.target))
			}
			return all
		}()
		want := []string{"a.json true false x"}
		if given != nil {
			want = append([]string{"given.json false true x"}, want...)
		}
		if !slices.Equal(names, want) || len(e.Files) != 2 {
			t.Errorf("given %t: records %q and %d files, want %q and 2", given != nil, names, len(e.Files), want)
		}
	}
}

// A record of tuning is good for the version of the toolchain and the target that it was made for; what the spec names takes its place.
func TestTuningOf(t *testing.T) {
	t.Parallel()
	record := func(name, version, target string) tuningRecord {
		return tuningRecord{toolchain: artifact.Toolchain{Name: name, Version: version}, target: target, file: toolchain.OutputFile{Name: name + version + target, Size: 3}}
	}
	m := Maker{Worker: run.Worker{}}
	m.learned.records = []tuningRecord{record("a", "1", "x"), record("b", "1", "x"), record("a", "2", "x"), record("a", "1", "y"), record("b", "2", "x")}
	planned := plan.Engine{Toolchain: artifact.Toolchain{Name: "a", Version: "1"}, Target: artifact.Target{Name: "x"}}
	got := tuning(m, planned)
	if len(got) != 1 || got[0].Name != "a1x" || got[0].Role != toolchain.RoleTuning || got[0].Size != 3 {
		t.Errorf("got %+v, want the record a1x", got)
	}
	planned.Tuning = &plan.Tuning{Input: toolchain.Input{Name: "given"}}
	if got := tuning(m, planned); len(got) != 1 || got[0].Name != "given" {
		t.Errorf("got %+v, want what the spec names", got)
	}
}
