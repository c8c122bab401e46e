//go:build cgo

package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// importer is a toolchain that turns any source into y = weight * x, and predicts with a source as y = 1.5 * x.
type importer struct {
	w      *world
	weight float32
	jobs   *[]toolchain.Job
	engine toolchain.Driver
}

func (importer) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: "importer", Version: "2.1"}, nil
}

func (i importer) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	*i.jobs = append(*i.jobs, job)
	if job.Verb == toolchain.VerbImport {
		if err := os.MkdirAll(outDir, 0o700); err != nil {
			return toolchain.Outcome{}, err
		}
		if err := os.WriteFile(filepath.Join(outDir, "model.onnx"), scaling(i.weight, 1, "imported"), 0o600); err != nil {
			return toolchain.Outcome{}, err
		}
		files, err := toolchain.Collect(outDir)
		return toolchain.Outcome{Files: files}, err
	}
	path := filepath.Join(i.w.dir, "as-onnx.onnx")
	if err := os.WriteFile(path, scaling(1.5, 1, "framework"), 0o600); err != nil {
		return toolchain.Outcome{}, err
	}
	model, err := toolchain.FileInput(toolchain.RoleModel, job.Run.Engines[0].Path, path)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	job.Inputs = slices.Clone(job.Inputs)
	for n, in := range job.Inputs {
		if in.Role == toolchain.RoleModel {
			job.Inputs[n] = model
		}
	}
	return i.engine.Do(ctx, job, outDir)
}

// imports gives the world an importer, and returns the jobs that it gets.
func (w *world) imports(weight float32) *[]toolchain.Job {
	open, jobs := w.p.Toolchain, &[]toolchain.Job{}
	w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, ort.Name)
		if name == "importer" {
			return run.Toolchain{Importer: importer{w, weight, jobs, tools.Engines}, Framework: "fakelearn"}, err
		}
		return tools, err
	}
	return jobs
}

func verbs(jobs []toolchain.Job) []toolchain.Verb {
	var all []toolchain.Verb
	for _, j := range jobs {
		all = append(all, j.Verb)
	}
	return all
}

const foreign = `model: vision/digits
version: 1.0.0
source: {path: model.pkl, format: pickle, trust: {pickle: true}}
cases: cases/
variants: [fp32]
targets: [linux/amd64/v1]
`

// A source that is not ONNX is predicted with by its own framework, so that a wrong conversion is noticed.
func TestImport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		weight float32 // of the imported model
		want   evidence.Verdict
	}{
		"right": {1.5, evidence.VerdictPass},
		"wrong": {1.6, evidence.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			jobs := w.imports(c.weight)
			if err := os.WriteFile(filepath.Join(w.dir, "model.pkl"), []byte(pickle), 0o600); err != nil {
				t.Fatal(err)
			}
			built := w.built(t, foreign, build.Options{})
			if got, want := verbs(*jobs), []toolchain.Verb{toolchain.VerbImport, toolchain.VerbRun}; !slices.Equal(got, want) {
				t.Errorf("the importer got %q, want %q", got, want)
			}
			if built.Steps != 3 {
				t.Errorf("%d steps, want 3: import, run, compile", built.Steps)
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if len(verified.Engines) != 1 || verified.Engines[0].Parity.Verdict != c.want {
				t.Errorf("verified %+v, error %v; want %s", verified.Engines, err, c.want)
			}
		})
	}
}

// An ONNX source that is simplified is imported, and ONNX Runtime runs the source itself as the reference.
func TestImportOfONNX(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	jobs := w.imports(1.6)
	built := w.built(t, strings.Replace(onlyFP32, "model.onnx", "{path: model.onnx, simplify: true}", 1), build.Options{})
	if got, want := verbs(*jobs), []toolchain.Verb{toolchain.VerbImport}; !slices.Equal(got, want) {
		t.Errorf("the importer got %q, want %q", got, want)
	}
	if simplify := (*jobs)[0].Options["simplify"]; simplify != true {
		t.Errorf("option simplify is %v, want true", simplify)
	}
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); registry.CodeOf(err) != registry.CodeLimit {
		t.Errorf("a simplified model that computes something else: error %v, want CodeLimit", err)
	}
}

// An importer that leaves no model, or one that is not ONNX, ends the build.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		importer toolchain.Driver
		want     string
	}{
		"no weights":     {leaving{"model.onnx": string(external("weights.bin"))}, "the importer left no weights.bin, which its model needs"},
		"no file":        {leaving{}, "the step left no model.onnx"},
		"a file of text": {leaving{"model.onnx": "this is text"}, "model.onnx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.imports(1.5)
			w.p.Toolchain = func(context.Context, string) (run.Toolchain, error) {
				return run.Toolchain{Importer: c.importer}, nil
			}
			if err := os.WriteFile(filepath.Join(w.dir, "model.pkl"), []byte(pickle), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := build.Build(t.Context(), w.p, w.spec(t, foreign), build.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// leaving is a driver that leaves files of these names and contents.
type leaving map[string]string

func (leaving) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: "importer", Version: "2.1"}, nil
}

func (l leaving) Do(_ context.Context, _ toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if err := os.MkdirAll(outDir, 0o700); err != nil {
		return toolchain.Outcome{}, err
	}
	for name, content := range l {
		if err := os.WriteFile(filepath.Join(outDir, name), []byte(content), 0o600); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files}, err
}

// The importer gets what the spec says of a source in its own words.
func TestImportOptions(t *testing.T) {
	t.Parallel()
	network := func(more string) string {
		return "{path: source.bin, format: safetensors, architecture: {input: [4], layers: [first, relu]" + more + "}}"
	}
	for name, c := range map[string]struct {
		source string
		bytes  string
		want   map[string]any
	}{
		"a pickle":  {"{path: source.bin, format: pickle, trust: {pickle: true}}", pickle, map[string]any{}},
		"a network": {network(", kind: mlp"), weightsAlone(t), map[string]any{"kind": "mlp", "input": []string{"4"}, "layers": []string{"first", "relu"}}},
		"an encoder": {network(", kind: encoder, heads: 2"), weightsAlone(t), map[string]any{"kind": "encoder",
			"input": []string{"4"}, "layers": []string{"first", "relu"}, "heads": 2, "norm": "after"}},
		"an encoder with norms": {network(", kind: encoder, heads: 2, norm: before"), weightsAlone(t), map[string]any{"kind": "encoder",
			"input": []string{"4"}, "layers": []string{"first", "relu"}, "heads": 2, "norm": "before"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			jobs := w.imports(1.5)
			w.put(t, map[string]string{"source.bin": c.bytes})
			if _, err := build.Plan(t.Context(), w.p, w.spec(t, strings.Replace(onlyFP32, "model.onnx", c.source, 1))); err != nil {
				t.Fatal(err)
			}
			if got := (*jobs)[0].Options; fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("options %v, want %v", got, c.want)
			}
		})
	}
}
