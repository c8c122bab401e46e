package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tradeoff"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// An importer is told of inputs in four lists; a dimension without a size has the one that the spec expects, or 2.
func TestInputOptions(t *testing.T) {
	t.Parallel()
	got := inputOptions([]spec.SourceInput{
		{Name: "image", Shape: []spec.Dimension{{Symbol: "batch"}, {Size: 3}, {Symbol: "h"}}},
		{Name: "n", DType: "int64"},
	}, spec.Shapes{"h": {Opt: 224}})
	want := map[string]any{"names": []string{"image", "n"}, "dtypes": []string{"float32", "int64"},
		"shapes": []string{"batch,3,h", ""}, "examples": []string{"2,3,224", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What a file names starts from its folder.
func TestBeside(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"model.onnx", "weights.bin", "weights.bin"}, {"a/b/model.onnx", "weights.bin", "a/b/weights.bin"}, {"a/model.onnx", "../w", "w"}} {
		if got := beside(c[0], c[1]); got != c[2] {
			t.Errorf("%s beside %s: got %s, want %s", c[1], c[0], got, c[2])
		}
	}
}

// Each member of a group runs alone, in order and then in reverse.
func TestApart(t *testing.T) {
	t.Parallel()
	var turns []string
	for _, g := range (runGroup{name: "g", members: []candidate{{id: "a"}, {id: "b"}, {id: "c"}}}).apart() {
		if len(g.members) != 1 || g.name != "g" {
			t.Fatalf("a turn of %d members of %s, want one of g", len(g.members), g.name)
		}
		turns = append(turns, g.members[0].id)
	}
	if want := []string{"a", "b", "c", "c", "b", "a"}; !slices.Equal(turns, want) {
		t.Errorf("turns %q, want %q", turns, want)
	}
}

// The objective of a spec bounds times; where it does not, its limits do.
func TestObjectiveOfASpec(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, text string) *spec.Spec {
		t.Helper()
		dir := t.TempDir()
		file := filepath.Join(dir, spec.File)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "model.onnx"), nil, 0o600), os.Mkdir(filepath.Join(dir, "cases"), 0o700)); err != nil {
			t.Fatal(err)
		}
		text = "model: a/b\nversion: 1.0.0\nsource: model.onnx\ncases: {path: cases/, labels: label}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n" + text
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := spec.Load(file, spec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	drop := 0.01
	for name, c := range map[string]struct {
		text string
		want tradeoff.Objective
	}{
		"nothing bounds times": {"objective: {max: accuracy}\n", tradeoff.Objective{Goal: "max accuracy"}},
		"the objective":        {"objective: {min: latency, subject_to: {p50: 3ms, p99: 9ms, accuracy_drop: 1%}}\nlimits: {latency: {p50: {max: 5ms}, p99: {max: 7ms}}}\n", tradeoff.Objective{Goal: "min latency", P50Ns: 3e6, P99Ns: 9e6, MaxLoss: &drop}},
		"limits":               {"objective: {min: latency}\nlimits: {latency: {p50: {max: 5ms}, p99: {max: 7ms}}}\n", tradeoff.Objective{Goal: "min latency", P50Ns: 5e6, P99Ns: 7e6}},
		"one of each":          {"objective: {min: latency, subject_to: {p99: 9ms}}\nlimits: {latency: {p50: {max: 5ms}, p99: {max: 7ms}}}\n", tradeoff.Objective{Goal: "min latency", P50Ns: 5e6, P99Ns: 9e6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := objective(read(t, c.text))
			if got.P50Ns != c.want.P50Ns || got.P99Ns != c.want.P99Ns || (got.MaxLoss == nil) != (c.want.MaxLoss == nil) || got.MaxLoss != nil && *got.MaxLoss != drop {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// What a verification that broke off left is used by one process at a time, begins when the first did, and is forgotten in time.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &Pipeline{Unfinished: filepath.Join(t.TempDir(), "[unfinished"), Now: func() time.Time { return now }}
	v := verification{p: p, subject: subject{began: beginning{StartedOn: now.UTC(), History: "sha256:1"}}}
	first, err := v.openUnfinished()
	if err != nil || first.dir == "" || first.began.History != "sha256:1" {
		t.Fatalf("first %+v, error %v; want a folder", first, err)
	}
	if second, err := v.openUnfinished(); err != nil || second.dir != "" {
		t.Errorf("while another works: %+v, error %v; want nothing", second, err)
	}
	if err := first.close(false); err != nil {
		t.Fatal(err)
	}
	v.began.History = "sha256:2"
	again, err := v.openUnfinished()
	if err != nil || again.dir != first.dir || again.began.History != "sha256:1" {
		t.Errorf("again %+v, error %v; want the same folder, begun as the first", again, err)
	}
	if err := again.close(true); err != nil {
		t.Fatal(err)
	}
	finished, err := v.openUnfinished()
	if err != nil || finished.began.History != "sha256:2" {
		t.Errorf("after one that finished: %+v, error %v; want a beginning of its own", finished, err)
	}
	if err := finished.close(false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(finished.dir, "began.json"), []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if damaged, err := v.openUnfinished(); err != nil || damaged.dir != "" {
		t.Errorf("a damaged one: %+v, error %v; want nothing", damaged, err)
	}
	now = now.Add(unfinishedFor - time.Hour)
	if v.forgetOld(); !isThere(finished.dir) {
		t.Error("it is forgotten an hour before its time")
	}
	now = now.Add(2 * time.Hour)
	if v.forgetOld(); isThere(finished.dir) {
		t.Error("it is not forgotten an hour after its time")
	}
	v.began.StartedOn = now.UTC()
	began, err := v.openUnfinished()
	if err != nil || began.dir == "" || began.close(false) != nil {
		t.Fatalf("%+v, error %v; want a folder", began, err)
	}
	held, err := toolchain.TryLockFile(filepath.Join(began.dir, "running"), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(began.dir, "running"), now.Add(2*unfinishedFor), now.Add(2*unfinishedFor)); err != nil {
		t.Fatal(err)
	}
	held()
	now = now.Add(unfinishedFor)
	if old, err := v.openUnfinished(); err != nil || old.dir != "" {
		t.Errorf("one that is too old and was not removed: %+v, error %v; want nothing", old, err)
	}
	v.began.StartedOn = now.UTC()
	for name, shared := range map[string]func(dir string) error{
		"others can write to it": func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-moved"), os.Symlink(dir+"-moved", dir))
		},
		"a file": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		p.Unfinished = filepath.Join(t.TempDir(), "unfinished")
		own, err := v.openUnfinished()
		if err != nil || own.dir == "" || own.close(false) != nil {
			t.Fatalf("%+v, error %v; want a folder", own, err)
		}
		if err := shared(p.Unfinished); err != nil {
			t.Fatal(err)
		}
		if found, err := v.openUnfinished(); err != nil || found.dir != "" {
			t.Errorf("%s: %+v, error %v; want nothing", name, found, err)
		}
	}
	p.Unfinished = ""
	if none, err := v.openUnfinished(); err != nil || none.dir != "" || none.close(true) != nil {
		t.Errorf("without a folder for it: %+v, error %v; want nothing", none, err)
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The labels of an engine are read up to the most that there may be.
func TestLabelsOfAnEngine(t *testing.T) {
	t.Parallel()
	f, c := fetcher{scratch: t.TempDir()}, candidate{id: "e1"}
	if got := f.labels(c); got != nil {
		t.Errorf("without a file: got %q, want nothing", got)
	}
	if err := os.Mkdir(filepath.Join(f.scratch, c.id), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(f.scratch, c.id, validators.LabelsFile)
	for _, size := range []int{0, 7, validators.MaxNamesBytes, validators.MaxNamesBytes + 5} {
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.labels(c); len(got) != min(size, validators.MaxNamesBytes+1) {
			t.Errorf("%d bytes: got %d", size, len(got))
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := f.labels(c); got != nil {
		t.Errorf("a folder: got %q, want nothing", got)
	}
}

// A comparison of times says its interval, or why there is none.
func TestNoteOfARatio(t *testing.T) {
	t.Parallel()
	if got := (compared{fault: "too noisy"}).note(); got != "too noisy" {
		t.Errorf("got %q", got)
	}
	if got, want := (compared{ratio: &registry.LatencyRatio{Ratio: 1.1, Low: 0.95, High: 1.25}}).note(), "+10.0 %, between -5.0 and +25.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
