package toolchain_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// asked is a driver that remembers the jobs it was given, and leaves one file for each.
type asked struct {
	leaves string
	fails  error
	jobs   *[]toolchain.Job
}

func newAsked(leaves string) asked { return asked{leaves, nil, new([]toolchain.Job)} }

func (a asked) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: a.leaves, Version: "1.2", Lock: digest.FromString("lock"), Code: digest.FromString("code")}, nil
}

func (a asked) Do(_ context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	*a.jobs = append(*a.jobs, job)
	if a.fails != nil {
		return toolchain.Outcome{}, a.fails
	}
	for _, name := range []string{a.leaves, "tuning/record"} {
		path := filepath.Join(outDir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(name), 0o666)); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files, Elapsed: 20}, err
}

// profileOf is that of a compiler whose options are for the target.
func profileOf(name, entry string) toolchain.Profile {
	return toolchain.Profile{Name: name, Entry: entry, CompileOptions: func(t artifact.Target, precision string) (map[string]any, error) {
		return map[string]any{"of": name, "for": t.Name + "/" + precision}, nil
	}}
}

// Each step of a chain gets its own options and inputs: the first the model, the second what the first left, and the
// tuning record, which is the second's. The rest is as the second does it.
func TestChain(t *testing.T) {
	t.Parallel()
	first, then := newAsked("model.hlo.pb"), newAsked("model.neff")
	by, err := first.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := profileOf("xla", "model.jax")
	before.Forms = []toolchain.Form{{Name: "hlo", Entry: "model.hlo.pb", Intermediate: true}}
	profile, err := profileOf("neuron", "model.neff").After(before, "hlo", by)
	if err != nil {
		t.Fatal(err)
	}
	options, err := profile.CompileOptions(artifact.Target{Name: "card"}, "int8")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]any{"of": "xla", "for": "card/int8", "form": "hlo"}
	from := map[string]any{"name": "model.hlo.pb", "version": "1.2", "lock": string(by.Lock), "code": string(by.Code), "file": "model.hlo.pb", "options": own}
	if want := map[string]any{"of": "neuron", "for": "card/int8", "from": from}; !reflect.DeepEqual(options, want) {
		t.Errorf("options %v, want %v", options, want)
	}
	if lock := toolchain.FirstLock(options); lock != by.Lock || toolchain.FirstLock(own) != "" {
		t.Errorf("lock of the first step %q, want %q; and none of one step", lock, by.Lock)
	}

	model := toolchain.Input{Role: toolchain.RoleModel, Name: "model.onnx", Path: "somewhere", Digest: digest.FromString("m"), Size: 1}
	record := toolchain.Input{Role: toolchain.RoleTuning, Name: "record", Path: "there", Digest: digest.FromString("r"), Size: 1}
	chain, dir := toolchain.Chain(first, then), t.TempDir()
	job := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: []toolchain.Input{model, record}, Options: options}
	outcome, err := chain.Do(t.Context(), job, filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := outcome.File("model.neff"); !ok || outcome.Elapsed != 40 {
		t.Errorf("outcome %v, want that of the second step, and the time of both", outcome)
	}
	if got := (*first.jobs)[0]; !reflect.DeepEqual(got.Options, own) || len(got.Inputs) != 1 || got.Inputs[0].Name != "model.onnx" {
		t.Errorf("the first step got %v, want the model alone with its own options", got)
	}
	got := (*then.jobs)[0]
	if !reflect.DeepEqual(got.Options, options) || len(got.Inputs) != 2 || got.Inputs[0].Name != "record" || got.Inputs[1].Name != "model.hlo.pb" {
		t.Errorf("the second step got %v, want the record and what the first left", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v (%v) are left, want the result alone", left, err)
	}
	if len(job.Inputs) != 2 || job.Inputs[0].Name != "model.onnx" {
		t.Error("the job of the caller has changed")
	}

	if _, err := chain.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir()); err != nil || len(*first.jobs) != 1 {
		t.Errorf("probe: %v, after %d jobs of the first, want that only the second is asked", err, len(*first.jobs))
	}
}

// What cannot be chained says why, and a first step that fails says which one it is.
func TestChainRefuses(t *testing.T) {
	t.Parallel()
	by := toolchain.Identity{Name: "nncf"}
	if _, err := profileOf("acc", "e").After(toolchain.Profile{}, "", by); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "nncf compiles nothing") {
		t.Errorf("a toolchain that only quantizes: %v", err)
	}
	if _, err := profileOf("acc", "e").After(profileOf("litert", "model.tflite"), "hlo", by); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "from: ") {
		t.Errorf("an unknown form: %v", err)
	}
	first := newAsked("model.tflite")
	first.fails = registry.Errorf(registry.CodeInvalid, "no such operator")
	job := toolchain.Job{Verb: toolchain.VerbCompile, Options: map[string]any{"from": map[string]any{"name": "litert", "options": map[string]any{}}}}
	_, err := toolchain.Chain(first, newAsked("e")).Do(t.Context(), job, filepath.Join(t.TempDir(), "out"))
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "first, by litert: no such operator") {
		t.Errorf("a first step that fails: %v", err)
	}
	job.Options = nil
	if _, err := toolchain.Chain(first, newAsked("e")).Do(t.Context(), job, t.TempDir()); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("options of one step: %v", err)
	}
}
