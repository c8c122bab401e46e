//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/fitness"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// world is a pipeline over a registry in memory. Its model is y = 1.5 * x, and its
// quantizer makes y = weight * x of it, or what quantize says.
type world struct {
	registrytest.Registry
	p        *run.Env
	dir      string
	steps    []progress.Step
	warnings []string
	opened   []evidence.Role // keys
	fitness  fitness.Reading

	run      func(job toolchain.Job, outDir string) error // what the driver does beside its work; may be nil
	quantize func(job toolchain.Job) (quantized, error)
	loads    map[string]time.Duration // by engine: how long the driver says that it loaded, if not as it did
}

const digits = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32, {name: int8, quantize: {method: dynamic}}]
targets: [linux/amd64/v1]
`

// setup makes a world whose engines run in this process.
func setup(t *testing.T, weight float32) *world {
	t.Helper()
	return setupOn(t, linear{}, weight)
}

// loadsInTests is how often engines are loaded again here: many tests verify, and few are about loads.
const loadsInTests = 3

// setupReal makes a world with the real ONNX Runtime.
func setupReal(t *testing.T, weight float32) *world {
	t.Helper()
	return setupOn(t, ort.New(ort.Options{Installs: toolchaintest.Installer(t, ort.Name)}), weight)
}

func setupOn(t *testing.T, runtime toolchain.Driver, weight float32) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), quantize: func(toolchain.Job) (quantized, error) { return quantized{weight: weight}, nil }}
	db, blobs := mem.New(), mem.NewBlobs()
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	w.Parts, w.Keys = content, registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		Environments: registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: w.Keys.Verify, Sign: w.Keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Interface = svc
	source, err := drivers.Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	engines := watched{runtime, w}
	var lock sync.Mutex
	w.p = &run.Env{
		Registry: svc, Parts: content, Sign: w.Keys.Sign,
		Toolchain: func(context.Context, string) (run.Toolchain, error) {
			return run.Toolchain{Profile: source.Profile, Engines: engines, Timing: engines, Quantizer: quantizer{w}}, nil
		},
		Node: describedOnce,
		OpenKey: func(_ context.Context, role evidence.Role, _, _ string) error {
			w.opened = append(w.opened, role)
			return nil
		},
		Progress: func(s progress.Step) {
			lock.Lock()
			defer lock.Unlock()
			w.steps = append(w.steps, s)
		},
		Fitness: func() fitness.Reading { return w.fitness },
		Warn:    func(text string) { w.warnings = append(w.warnings, text) },
	}
	w.p.MostLoads = loadsInTests
	w.p.Draw = func(n int) int { return n - 1 }
	if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), scaling(1.5, 1, "made by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.dir, "cases"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeCases(t, filepath.Join(w.dir, "cases", "cases-00000.safetensors"), []float32{1, -2, 3})
	return w
}

// descriptions are of this machine, by what is asked for: describing it looks at many folders, and
// every world asks the same.
var descriptions sync.Map

// describedOnce is this machine, described once.
func describedOnce(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
	// Not by the context of the test that comes first, which may be cancelled.
	once, _ := descriptions.LoadOrStore(fmt.Sprint(runtimes), sync.OnceValues(func() (artifact.Node, error) {
		return node.Describe(context.WithoutCancel(ctx), node.Options{Runtimes: runtimes})
	}))
	n, err := once.(func() (artifact.Node, error))()
	n.Accelerators, n.Notes, n.Runtimes = slices.Clone(n.Accelerators), slices.Clone(n.Notes), maps.Clone(n.Runtimes)
	return n, errors.Join(err, ctx.Err())
}

// calibration writes a case of calibration for each of x.
func (w *world) calibration(t *testing.T, x []float32) {
	t.Helper()
	folder := filepath.Join(w.dir, "calibration")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	writeCases(t, filepath.Join(folder, "x.safetensors"), x)
}

// spec reads a spec in the folder of the world.
func (w *world) spec(t *testing.T, text string) *spec.Spec {
	t.Helper()
	path := filepath.Join(w.dir, spec.File)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := spec.Load(path, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// built builds a spec.
func (w *world) built(t *testing.T, text string, o build.Options) build.Result {
	t.Helper()
	result, err := build.Build(t.Context(), w.p, w.spec(t, text), o)
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return result
}

// done lists the names of the steps that ended in a state.
func (w *world) done(state progress.State) []string {
	var names []string
	for _, s := range w.steps {
		if s.State == state {
			names = append(names, s.Name)
		}
	}
	return names
}

// watched is a driver that also does what the test says.
type watched struct {
	toolchain.Driver
	w *world
}

func (d watched) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	outcome, err := d.Driver.Do(ctx, job, outDir)
	if err == nil && job.Verb == toolchain.VerbRun && len(d.w.loads) > 0 {
		outcome.Result, err = d.w.loaded(outcome, job)
	}
	if err != nil || d.w.run == nil {
		return outcome, err
	}
	if err := d.w.run(job, outDir); err != nil {
		return toolchain.Outcome{}, err
	}
	outcome.Files, err = toolchain.Collect(outDir)
	return outcome, err
}

// loaded is the result of a run in which engines loaded as long as the test says.
func (w *world) loaded(outcome toolchain.Outcome, job toolchain.Job) (json.RawMessage, error) {
	result, err := outcome.RunResult(*job.Run)
	if err != nil {
		return nil, err
	}
	for i, e := range result.Engines {
		result.Engines[i].LoadNS = max(e.LoadNS, w.loads[e.ID].Nanoseconds())
	}
	return json.Marshal(result)
}

// quantizer makes the model y = weight * x, as the world says.
type quantizer struct{ w *world }

func (quantizer) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: ort.Name, Version: "1"}, nil
}

func (q quantizer) Do(_ context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	made, err := q.w.quantize(job)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	if err := os.MkdirAll(outDir, 0o700); err != nil {
		return toolchain.Outcome{}, err
	}
	if err := os.WriteFile(filepath.Join(outDir, "model.onnx"), scaling(made.weight, 1, "quantized"), 0o600); err != nil {
		return toolchain.Outcome{}, err
	}
	if made.ranges != "" {
		if err := os.WriteFile(filepath.Join(outDir, "calibration.json"), []byte(made.ranges), 0o600); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files, Result: json.RawMessage(made.result)}, err
}

// quantized is what the quantizer makes of a job.
type quantized struct {
	weight float32
	result string // JSON
	ranges string // the table of ranges; empty for none
}

// A release whose summary could not name everything is refused before anything is made.
func TestBuildRefusesTooManyEngines(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	var spec strings.Builder
	spec.WriteString("model: vision/digits\nversion: 1.0.0\nsource: model.onnx\ncases: cases/\ntargets: [linux/amd64/v1]\nvariants:\n")
	for i := range artifact.MaxEngines + 1 {
		fmt.Fprintf(&spec, "  - {name: v%d, quantize: {method: dynamic}}\n", i)
	}
	ran := false
	w.run = func(toolchain.Job, string) error {
		ran = true
		return nil
	}
	_, err := build.Build(t.Context(), w.p, w.spec(t, spec.String()), build.Options{})
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "would have 512 engines: want at most 511") {
		t.Errorf("error %v", err)
	}
	if ran {
		t.Error("a driver ran, want nothing before the refusal")
	}
}

// A release holds one engine for each target and variant, and prod accepts it once it is verified.
func TestBuildVerifyPromote(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1.5)
	built := w.built(t, digits, build.Options{})
	var labels []string
	for _, e := range built.Release.Engines {
		labels = append(labels, e.Label())
	}
	if want := []string{"linux-amd64-v1/fp32", "linux-amd64-v1/int8"}; !slices.Equal(labels, want) {
		t.Errorf("engines %q, want %q", labels, want)
	}
	if built.Unchanged || built.Steps != 4 || built.Cached != 0 || built.Attached != 7 {
		t.Errorf("unchanged %t, %d steps, %d cached, %d bundles; want a new release of 4 steps without a cache, with 7 bundles",
			built.Unchanged, built.Steps, built.Cached, built.Attached)
	}
	if want := []evidence.Role{evidence.RoleBuilder}; !slices.Equal(w.opened, want) {
		t.Errorf("a build opened the keys of %q, want %q", w.opened, want)
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if len(verified.Engines) != 2 || len(verified.Skipped) != 0 {
		t.Fatalf("verified %d engines and skipped %v, want 2 and none", len(verified.Engines), verified.Skipped)
	}
	for _, e := range verified.Engines {
		if e.Parity.Verdict != evidence.VerdictPass || e.Parity.Cases.Ran != 3 || len(e.Parity.Reasons) != 0 {
			t.Errorf("%s: parity %s of %d cases %v, want a pass of 3", e.Label, e.Parity.Verdict, e.Parity.Cases.Ran, e.Parity.Reasons)
		}
		if e.Performance.Verdict != evidence.VerdictRecorded || e.Performance.Latency.P50Ns <= 0 || e.Performance.ReferenceLatency.P50Ns <= 0 {
			t.Errorf("%s: performance %s, median %d ns, of the reference model %d ns; want recorded timings of both",
				e.Label, e.Performance.Verdict, e.Performance.Latency.P50Ns, e.Performance.ReferenceLatency.P50Ns)
		}
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: "vision/digits"}); err != nil {
		t.Errorf("promote what was built and verified: %v", err)
	}
	if failed := w.done(progress.Failed); len(failed) > 0 {
		t.Errorf("steps %q failed, want none", failed)
	}
}

// The same plan makes nothing again, and opens no key. A check of reproducibility does.
func TestBuildAgain(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1.5)
	first := w.built(t, digits, build.Options{})
	w.opened = nil
	second := w.built(t, digits, build.Options{})
	if !second.Unchanged || second.Release.Digest != first.Release.Digest || second.Steps != 0 || len(w.opened) != 0 {
		t.Errorf("unchanged %t, %d steps, keys %q, release %s; want the release %s untouched",
			second.Unchanged, second.Steps, w.opened, second.Release.Digest, first.Release.Digest)
	}
	checked := w.built(t, digits, build.Options{CheckReproducible: true})
	if checked.Unchanged || checked.Release.Digest != first.Release.Digest {
		t.Errorf("a check of reproducibility: unchanged %t, release %s; want %s made again",
			checked.Unchanged, checked.Release.Digest, first.Release.Digest)
	}
	if checked.Attached != 2 {
		t.Errorf("a check of reproducibility attached %d bundles, want 2: the provenance of each engine", checked.Attached)
	}
	if again := w.built(t, digits, build.Options{CheckReproducible: true}); again.Attached != 0 {
		t.Errorf("the same check again attached %d bundles, want none: all is said", again.Attached)
	}
	for _, label := range []string{"linux-amd64-v1/fp32", "linux-amd64-v1/int8"} {
		if got := checked.Reproducible[label]; got != evidence.ReproducibleBytes {
			t.Errorf("%s is reproducible by %q, want %q", label, got, evidence.ReproducibleBytes)
		}
	}
	changed := w.built(t, strings.Replace(digits, ", {name: int8, quantize: {method: dynamic}}", "", 1), build.Options{})
	if changed.Unchanged || changed.Release.Digest == first.Release.Digest || len(changed.Release.Engines) != 1 {
		t.Errorf("another plan: unchanged %t, release %s with %d engines; want another release with 1 engine",
			changed.Unchanged, changed.Release.Digest, len(changed.Release.Engines))
	}
}

// An engine that does not keep its limits gets a report that says so, and an error. The other engine still passes.
func TestVerifyFails(t *testing.T) {
	t.Parallel()
	w := setupReal(t, -1.5)
	built := w.built(t, digits, build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(),
		"linux-amd64-v1/int8 does not keep its limits:\n  output y: the signal to noise ratio in dB is -") {
		t.Errorf("error %v, want CodeLimit that names int8 and its noise", err)
	}
	if strings.Contains(err.Error(), "fp32") {
		t.Errorf("the error blames fp32 as well: %v", err)
	}
	want := map[string]evidence.Verdict{"linux-amd64-v1/fp32": evidence.VerdictPass, "linux-amd64-v1/int8": evidence.VerdictFail}
	for _, e := range verified.Engines {
		if e.Parity.Verdict != want[e.Label] {
			t.Errorf("%s: verdict %s, want %s", e.Label, e.Parity.Verdict, want[e.Label])
		}
	}
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: "vision/digits"})
	if registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("promotion after a failed verification: %+v, error %v; want CodePolicy", p, err)
	}
}

// model writes the model y = weight * x.
func (w *world) model(t *testing.T, weight float64) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), scaling(float32(weight), 1, "made by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A reference model that gives NaN everywhere can be compared with nothing. One that gives infinities can,
// with a warning, and nothing is shown of the engine.
func TestBuildOfModelsWithoutFiniteOutputs(t *testing.T) {
	t.Parallel()
	fp32 := strings.Replace(digits, ", {name: int8, quantize: {method: dynamic}}", "", 1)
	t.Run("NaN", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		w.model(t, math.NaN())
		_, err := build.Build(t.Context(), w.p, w.spec(t, fp32), build.Options{})
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), `output "y" is NaN in every element of all 3 cases`) {
			t.Errorf("error %v, want CodeInvalid that names the output y", err)
		}
	})
	t.Run("infinity", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		w.model(t, math.Inf(1))
		built := w.built(t, fp32, build.Options{})
		if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], `golden output "y" has`) {
			t.Errorf("warnings %q, want one about the output y", w.warnings)
		}
		if _, err := verify.Verify(t.Context(), w.p, built.Ref); !registry.HasCode(err, registry.CodeLimit) || !strings.Contains(err.Error(), "output y has no finite elements in any case") {
			t.Errorf("error %v, want that nothing was compared", err)
		}
	})
	t.Run("finite", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		w.built(t, fp32, build.Options{})
		if len(w.warnings) != 0 {
			t.Errorf("warnings %q, want none", w.warnings)
		}
	})
}

// Calibration has no case of the cases, and a warning if it has one alone.
func TestCalibrationApartFromCases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calibration []float32
		want        string // of the error; empty for none
		warning     string
	}{
		"apart":         {[]float32{4, 5}, "", ""},
		"the last":      {[]float32{4, 5, 3}, "cases-00000.safetensors: case 2 is also used for calibration, as", ""},
		"all":           {[]float32{3, -2, 1}, "that holds for 3 of 3 cases", ""},
		"one alone":     {[]float32{4}, "", "one case is all of calibration"},
		"another zero":  {[]float32{float32(math.Copysign(0, -1)), 5}, "", ""},
		"one twice":     {[]float32{1, 1}, "that holds for 1 of 3 cases", ""},
		"one in common": {[]float32{1}, "x.safetensors: case 0; that holds for 1 of 3 cases", "one case is all of calibration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.calibration(t, c.calibration)
			_, err := build.Plan(t.Context(), w.p, w.spec(t, strings.Replace(digits, "dynamic", "static", 1)+"calibration: calibration/\n"))
			if c.want == "" && err != nil || c.want != "" && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.want)
			}
			if c.want == "" && strings.Contains(strings.Join(w.warnings, "\n"), "calibration") != (c.warning != "") {
				t.Errorf("warnings %q, want %q", w.warnings, c.warning)
			}
		})
	}
}

// What goes wrong in a build is an error of the step's own code, and nothing is published.
func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	full := func(context.Context) (run.Space, error) { return run.Space{Where: "/tmp", Free: 1}, nil }
	for name, c := range map[string]struct {
		edit func(w *world)
		code registry.Code
		text string
	}{
		"a disk that is full": {func(w *world) { w.p.Space = full }, registry.CodeFull, "free in /tmp: nothing was begun"},
		"a key that does not open": {func(w *world) {
			w.p.OpenKey = func(context.Context, evidence.Role, string, string) error {
				return registry.Errorf(registry.CodeUnauthenticated, "wrong password")
			}
		}, registry.CodeUnauthenticated, "wrong password"},
		"a signature that fails": {func(w *world) {
			w.p.Sign = func(context.Context, evidence.Role, []byte) ([]byte, error) {
				return nil, registry.Errorf(registry.CodeUnavailable, "the key is gone")
			}
		}, registry.CodeUnavailable, "the key is gone"},
		"a driver that fails": {func(w *world) {
			w.run = func(job toolchain.Job, _ string) error {
				if job.Verb != toolchain.VerbCompile {
					return nil
				}
				return registry.Errorf(registry.CodeWrongNode, "no such instruction")
			}
		}, registry.CodeWrongNode, "compile fp32 for linux-amd64-v1: no such instruction"},
		"a compiler that leaves something else": {func(w *world) {
			w.run = func(job toolchain.Job, outDir string) error {
				if job.Verb != toolchain.VerbCompile {
					return nil
				}
				return os.Rename(filepath.Join(outDir, "model.onnx"), filepath.Join(outDir, "model.bin"))
			}
		}, registry.CodeInternal, "compile fp32 for linux-amd64-v1: the compiler left no model.onnx"},
		"a run without outputs": {func(w *world) {
			w.run = func(job toolchain.Job, outDir string) error {
				if job.Verb != toolchain.VerbRun {
					return nil
				}
				return os.RemoveAll(filepath.Join(outDir, "outputs"))
			}
		}, registry.CodeInternal, "no outputs for shard cases-00000.safetensors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			c.edit(w)
			_, err := build.Build(t.Context(), w.p, w.spec(t, strings.Replace(digits, ", {name: int8, quantize: {method: dynamic}}", "", 1)), build.Options{})
			if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v (%s), want %s with %q", err, registry.CodeOf(err), c.code, c.text)
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
				t.Errorf("heads %v, error %v after a build that failed; want none", heads, err)
			}
		})
	}
}
