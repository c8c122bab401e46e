//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/divergence"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// seeThrough is linear with tensors inside that can be seen: h1, h2, h3 and y, each computed of the one before.
// An engine has the reference's values, but for those that are off, each by a factor.
type seeThrough struct {
	linear
	off     map[string]float32
	lacks   []string // tensors that the engine's own graph does not have
	fails   string   // a tensor that the runtime does not give of an engine; empty: none
	texts   []string // tensors of a type that cannot be compared
	imports error    // of the importer

	mu   *sync.Mutex
	jobs *[]toolchain.Job
}

func newSeeThrough() seeThrough {
	return seeThrough{off: make(map[string]float32), mu: new(sync.Mutex), jobs: new([]toolchain.Job)}
}

var inside = []string{"h1", "h2", "h3", "y"}

func (s seeThrough) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	s.mu.Lock()
	*s.jobs = append(*s.jobs, job)
	s.mu.Unlock()
	switch {
	case job.Verb == toolchain.VerbImport && s.imports != nil:
		return toolchain.Outcome{}, s.imports
	case job.Verb == toolchain.VerbImport && job.Options["inner"] == true:
		return s.graph(filepath.Base(filepath.Dir(job.Inputs[0].Path)))
	case job.Verb == toolchain.VerbImport:
		if err := os.MkdirAll(outDir, 0o700); err != nil {
			return toolchain.Outcome{}, err
		}
		if err := copyModel(job, filepath.Join(outDir, "model.onnx")); err != nil {
			return toolchain.Outcome{}, err
		}
		files, err := toolchain.Collect(outDir)
		return toolchain.Outcome{Files: files}, err
	case job.Verb == toolchain.VerbRun && len(job.Run.SelectOutputs) > 0:
		return s.show(ctx, job, outDir)
	}
	return s.linear.Do(ctx, job, outDir)
}

// graph lists the tensors of the graph in a folder: of the reference, of what a quantizer left, or of an engine.
func (s seeThrough) graph(folder string) (toolchain.Outcome, error) {
	type value struct {
		divergence.Value
		DType string `json:"dtype"`
	}
	said := struct {
		Values  []value  `json:"values"`
		Outputs []string `json:"outputs"`
	}{Outputs: []string{"y"}}
	of := "x"
	for _, name := range inside {
		dtype := "float"
		if slices.Contains(s.texts, name) {
			dtype = "string"
		}
		if whole := folder == "reference" || strings.HasPrefix(folder, "quantized"); whole || !slices.Contains(s.lacks, name) {
			said.Values = append(said.Values, value{divergence.Value{Name: name, Node: "node of " + name, Operator: "Mul", Inputs: []string{of}}, dtype})
		}
		of = name
	}
	text, err := json.Marshal(said)
	return toolchain.Outcome{Result: text}, err
}

// show runs an engine and leaves the tensors that were asked for.
func (s seeThrough) show(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	id := job.Run.Engines[0].ID
	if id != "reference" && s.fails != "" && slices.Contains(job.Run.SelectOutputs, s.fails) {
		return toolchain.Outcome{}, errors.New(s.fails + " cannot be an output")
	}
	outcome, err := s.linear.Do(ctx, job, outDir)
	if err != nil {
		return outcome, err
	}
	for _, in := range job.Inputs {
		if in.Role != toolchain.RoleCases {
			continue
		}
		if err := s.write(filepath.Join(outDir, "outputs", id, in.Name), job.Run.SelectOutputs, id != "reference"); err != nil {
			return outcome, err
		}
	}
	outcome.Files, err = toolchain.Collect(outDir)
	return outcome, err
}

// write replaces a file with the output y by one with the tensors.
func (s seeThrough) write(path string, names []string, engine bool) error {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return err
	}
	y, err := f.Rows("y", 0, 1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	made := make(map[string]tensor.Tensor)
	values, err := tensor.Values[float32](tensor.Tensor{DType: y.DType, Shape: []int64{int64(y.Len())}, Data: y.Data})
	if err != nil {
		return err
	}
	factor := float32(1)
	for i, name := range inside {
		if by, ok := s.off[name]; ok && engine {
			factor *= by
		}
		if slices.Contains(names, name) {
			scaled := make([]float32, len(values))
			for j, v := range values {
				scaled[j] = v * factor * float32(i+1)
			}
			if made[name], err = tensor.New(scaled, y.Shape...); err != nil {
				return err
			}
		}
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(tensorfile.Write(out, made, nil), out.Close())
}

// seenThrough builds a spec with a runtime that can be seen through.
func seenThrough(t *testing.T, s seeThrough, text string) (*world, registry.Ref) {
	t.Helper()
	w := setupOn(t, s, 1.5)
	source, err := drivers.Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	w.p.Toolchain = func(context.Context, string) (run.Toolchain, error) {
		return run.Toolchain{Profile: source.Profile, Engines: s, Timing: s, Quantizer: quantizer{w}, Importer: s}, nil
	}
	built := w.built(t, text, build.Options{})
	return w, built.Ref
}

// The first tensor that is off is named, with the node that computes it; tensors that an engine has joined are measured in the
// model that it was compiled of, and what a runtime does not give hides no other.
func TestBisectByTensors(t *testing.T) {
	t.Parallel()
	off := func(name string) func(*seeThrough) { return func(s *seeThrough) { s.off[name] = 1.2 } }
	for name, c := range map[string]struct {
		change   func(*seeThrough)
		first    string // empty: none
		nodes    []string
		tensors  []string
		refined  []string
		missing  int
		problems []string
		within   bool
	}{
		"nothing is off":         {func(*seeThrough) {}, "", nil, inside, nil, 0, nil, true},
		"the first":              {off("h1"), "h1", []string{"h1"}, inside, nil, 0, nil, false},
		"one inside":             {off("h3"), "h3", []string{"h3"}, inside, nil, 0, nil, false},
		"the output":             {off("y"), "y", []string{"y"}, inside, nil, 0, nil, false},
		"in what was joined":     {func(s *seeThrough) { off("h2")(s); s.lacks = []string{"h2"} }, "h2", []string{"h2"}, inside, []string{"h2"}, 0, nil, false},
		"behind what was joined": {func(s *seeThrough) { off("h3")(s); s.lacks = []string{"h2"} }, "h3", []string{"h3"}, inside, []string{"h2"}, 0, nil, false},
		"before what was joined": {func(s *seeThrough) { off("h1")(s); s.lacks = []string{"h2"} }, "h1", []string{"h1"}, []string{"h1", "h3", "y"}, nil, 1, nil, false},
		"one that is not given": {func(s *seeThrough) { off("h3")(s); s.fails = "h2" }, "h3", []string{"h2", "h3"}, []string{"h1", "h3", "y"}, nil, 1,
			[]string{"h2: onnxruntime: h2 cannot be an output"}, false},
		"one that is text": {func(s *seeThrough) { off("h3")(s); s.texts = []string{"h2"} }, "h3", []string{"h2", "h3"}, []string{"h1", "h3", "y"}, nil, 1, nil, false},
		"names of its own": {func(s *seeThrough) { off("h2")(s); s.lacks = []string{"h1", "h2", "h3"} }, "h2", []string{"h2"}, inside, nil, 0, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeeThrough()
			c.change(&s)
			w, ref := seenThrough(t, s, onlyFP32)
			found, err := diagnose.Bisect(t.Context(), w.p, ref, diagnose.BisectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var tensors, nodes []string
			for _, d := range found.Tensors {
				tensors = append(tensors, d.Name)
			}
			first := ""
			if found.First != nil {
				first = found.First.Name
				for _, n := range found.First.Nodes {
					nodes = append(nodes, strings.TrimPrefix(n.Node, "node of "))
				}
			}
			if first != c.first || !slices.Equal(nodes, c.nodes) || found.WithinLimit != c.within || (first != "") != (found.First != nil && found.First.Sharp) {
				t.Errorf("first %q of nodes %q, within the limit %t; want %q of %q, %t", first, nodes, found.WithinLimit, c.first, c.nodes, c.within)
			}
			if !slices.Equal(tensors, c.tensors) || !slices.Equal(found.Refined, c.refined) || found.NotCompared != c.missing || !slices.Equal(found.Problems, c.problems) {
				t.Errorf("compared %q, refined %q, %d not, problems %q; want %q, %q, %d, %q", tensors, found.Refined, found.NotCompared, found.Problems, c.tensors, c.refined, c.missing, c.problems)
			}
			if made := name == "names of its own"; found.MadeAgain != made || len(found.Cases) != 3 || len(found.Outputs) != 1 || found.Outputs[0].Differs() {
				t.Errorf("made again %t, cases %v, outputs %+v; want %t, all three, and one that is the same", found.MadeAgain, found.Cases, found.Outputs, made)
			}
		})
	}
}

// The model that an engine was compiled of is quantized again as it was for the engine: by the data that the method reads.
func TestBisectQuantizesAgain(t *testing.T) {
	t.Parallel()
	for method, want := range map[string][]string{
		"dynamic": {toolchain.RoleModel},
		"static":  {toolchain.RoleModel, toolchain.RoleCalibration},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := newSeeThrough()
			s.off["h2"], s.lacks = 1.2, []string{"h2"}
			w := setupOn(t, s, 1.5)
			w.calibration(t, []float32{4, 5})
			w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1.5, ranges: `{"x": [0, 5]}`}, nil }
			source, err := drivers.Find(ort.Name)
			if err != nil {
				t.Fatal(err)
			}
			w.p.Toolchain = func(context.Context, string) (run.Toolchain, error) {
				return run.Toolchain{Profile: source.Profile, Engines: s, Timing: s, Quantizer: quantizer{w}, Importer: s}, nil
			}
			built := w.built(t, strings.Replace(digits, "dynamic", method, 1)+"calibration: calibration/\n", build.Options{})
			var roles []string
			w.quantize = func(job toolchain.Job) (quantized, error) {
				for _, in := range job.Inputs {
					roles = append(roles, in.Role)
				}
				return quantized{weight: 1.5}, nil
			}
			found, err := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{Engine: "int8"})
			if err != nil || found.First == nil || found.First.Name != "h2" || !slices.Equal(found.Refined, []string{"h2"}) {
				t.Fatalf("first %+v, refined %q, error %v; want h2", found.First, found.Refined, err)
			}
			if !reflect.DeepEqual(roles, want) {
				t.Errorf("the quantizer got %q, want %q", roles, want)
			}
		})
	}
}

// What stands in the way of a bisection is its error.
func TestBisectFails(t *testing.T) {
	t.Parallel()
	broken := newSeeThrough()
	w, ref := seenThrough(t, newSeeThrough(), digits)
	describe := w.p.Toolchain
	with := func(change func(*run.Toolchain)) func(context.Context, string) (run.Toolchain, error) {
		return func(ctx context.Context, name string) (run.Toolchain, error) {
			tool, err := describe(ctx, name)
			change(&tool)
			return tool, err
		}
	}
	broken.imports = errInjected
	for name, c := range map[string]struct {
		change func(*run.Toolchain)
		o      diagnose.BisectOptions
		code   registry.Code
		want   error
	}{
		"no importer":            {func(tool *run.Toolchain) { tool.Importer = nil }, diagnose.BisectOptions{Engine: "fp32"}, registry.CodeUnavailable, nil},
		"an importer that fails": {func(tool *run.Toolchain) { tool.Importer = broken }, diagnose.BisectOptions{Engine: "fp32"}, "", errInjected},
		"a compiler of sources":  {func(tool *run.Toolchain) { tool.Profile.Sources = []string{"keras"} }, diagnose.BisectOptions{Engine: "fp32"}, registry.CodeInvalid, nil},
		"layers of fp32":         {func(*run.Toolchain) {}, diagnose.BisectOptions{Engine: "fp32", Layers: time.Second}, registry.CodeInvalid, nil},
		"another engine":         {func(*run.Toolchain) {}, diagnose.BisectOptions{Engine: "int4"}, registry.CodeNotFound, nil},
		"none of two":            {func(*run.Toolchain) {}, diagnose.BisectOptions{}, registry.CodeInvalid, nil},
	} {
		w.p.Toolchain = with(c.change)
		_, err := diagnose.Bisect(t.Context(), w.p, ref, c.o)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || c.code != "" && !registry.HasCode(err, c.code) {
			t.Errorf("%s: error %v, want %s%v", name, err, c.code, c.want)
		}
	}
	w.p.Toolchain = describe
	// A release whose builder is no longer trusted says nothing of how it was made.
	w.Keys.Retrust(slices.DeleteFunc(registrytest.RoleKeys(), func(e trust.TrustEntry) bool { return e.Key == string(evidence.RoleBuilder) }))
	if _, err := diagnose.Bisect(t.Context(), w.p, ref, diagnose.BisectOptions{Engine: "fp32"}); !registry.HasCode(err, registry.CodePolicy) {
		t.Errorf("an engine that no trusted builder signed: error %v, want CodePolicy", err)
	}
}
