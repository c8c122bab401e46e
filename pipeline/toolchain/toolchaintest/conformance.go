package toolchaintest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Conformance describes a driver that compiles and runs, with inputs for it.
type Conformance struct {
	// New creates the driver anew, as another process would.
	New     func() toolchain.Driver
	Profile toolchain.Profile
	Model   string // path of a small model
	Input   string // what the compiler gets it as; empty means model.onnx
	Cases   string // path of a shard of cases for it
	Count   int    // of cases in it
	Options map[string]any
}

func (c Conformance) input() string { return cmp.Or(c.Input, "model.onnx") }

// TestDriver checks the contract of every driver: a stable identity that the running tool
// confirms; engines and outputs, if it can run engines, as reproducible as its profile says; errors with the right code
// for unsupported jobs; inputs that stay unchanged, and no files left after a failed job.
func TestDriver(t *testing.T, c Conformance) {
	t.Helper()
	t.Run("identity", func(t *testing.T) {
		t.Parallel()
		c.identity(t)
	})
	t.Run("compile and run", func(t *testing.T) {
		t.Parallel()
		engine := c.compile(t)
		if !c.Profile.CompileOnly {
			c.run(t, engine)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		t.Parallel()
		c.refuse(t)
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		c.cancel(t)
	})
}

func (c Conformance) identity(t *testing.T) {
	t.Helper()
	first, err := c.New().Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != c.Profile.Name || first.Version == "" || first.Code.Validate() != nil || len(first.Versions) == 0 {
		t.Errorf("identity %+v is not complete", first)
	}
	if again, err := c.New().Identity(t.Context()); err != nil || !reflect.DeepEqual(first, again) {
		t.Errorf("identity %+v, and then %+v (%v)", first, again, err)
	}
	outcome := c.do(t, toolchain.Job{Verb: toolchain.VerbProbe})
	CheckSchema(t, "probeResult", outcome.Result)
	var probe toolchain.ProbeResult
	if err := json.Unmarshal(outcome.Result, &probe); err != nil {
		t.Fatal(err)
	}
	confirmed := 0
	for name, version := range probe.Tool {
		if recorded, ok := first.Versions[name]; ok {
			confirmed++
			if recorded != version {
				t.Errorf("the running tool has %s %s, its identity %s", name, version, recorded)
			}
		}
	}
	if confirmed == 0 {
		t.Errorf("the running tool says %v, of which its identity %v has nothing", probe.Tool, first.Versions)
	}
}

// do does a job in a process of its own, and checks that its input files stay unchanged.
func (c Conformance) do(t *testing.T, job toolchain.Job) toolchain.Outcome {
	t.Helper()
	outcome, err := c.New().Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Enforced.Sandbox == "" || outcome.Enforced.Inputs == "" {
		t.Errorf("nobody says what held the driver: %+v", outcome.Enforced)
	}
	for _, in := range job.Inputs {
		if d, _, err := toolchain.HashFile(in.Path); err != nil || d != in.Digest {
			t.Errorf("input %s is now %s (%v)", in.Name, d, err)
		}
	}
	return outcome
}

// compile compiles twice and returns one of the engines.
func (c Conformance) compile(t *testing.T) toolchain.Outcome {
	t.Helper()
	job := toolchain.Job{Verb: toolchain.VerbCompile, Options: c.Options,
		Inputs: []toolchain.Input{Input(t, toolchain.RoleModel, c.input(), c.Model)}}
	engine, twin := c.do(t, job), c.do(t, job)
	if _, ok := engine.File(c.Profile.Entry); !ok {
		t.Fatalf("the engine has the files %v and no %s", digests(engine), c.Profile.Entry)
	}
	same := maps.Equal(digests(engine), digests(twin))
	if c.Profile.Reproducible == evidence.ReproducibleBytes && !same {
		t.Errorf("two processes made %v and %v", digests(engine), digests(twin))
	}
	if c.Profile.Reproducible == "" {
		t.Error("the profile does not say how reproducible engines are")
	}
	return engine
}

func digests(o toolchain.Outcome) map[string]registry.Digest {
	all := make(map[string]registry.Digest)
	for _, f := range o.Files {
		all[f.Name] = f.Digest
	}
	return all
}

// run runs an engine twice: the outputs are the same bytes, the timings are not.
func (c Conformance) run(t *testing.T, engine toolchain.Outcome) {
	t.Helper()
	job := toolchain.Job{
		Verb: toolchain.VerbRun, Inputs: []toolchain.Input{Input(t, toolchain.RoleCases, "cases.safetensors", c.Cases)},
		Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "engine", Path: "engine/" + c.Profile.Entry}},
			Rounds: 2, Warmup: 1, Level: c.Profile.Level},
	}
	for _, f := range engine.Files {
		job.Inputs = append(job.Inputs, Input(t, toolchain.RoleModel, "engine/"+f.Name, f.Path))
	}
	first, second := c.do(t, job), c.do(t, job)
	if _, ok := first.File("outputs/engine/cases.safetensors"); !ok || len(first.Files) != 1 {
		t.Errorf("outputs %v, want a shard named as that of the cases", digests(first))
	}
	if !maps.Equal(digests(first), digests(second)) {
		t.Errorf("two processes computed %v and %v", digests(first), digests(second))
	}
	job.Inputs[0] = Input(t, toolchain.RoleCases, "cases.safetensors", withBatches(t, c.Cases))
	sameData(t, first, c.do(t, job))
	CheckSchema(t, "runResult", first.Result)
	result, err := first.RunResult(*job.Run)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Engines) != 1 || result.Cases != c.Count ||
		len(result.Engines[0].TimingsNS) != 2*c.Count || result.Engines[0].LoadNS <= 0 {
		t.Errorf("result of %d cases and %d engines, want 2 timings of each of %d cases",
			result.Cases, len(result.Engines), c.Count)
	}
}

// withBatches writes the cases of a shard with a batch dimension of 1 behind the case dimension,
// and returns the path.
func withBatches(t *testing.T, cases string) string {
	t.Helper()
	tensors, err := tensorfile.ReadFile(cases, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range tensors {
		v.Shape = slices.Insert(v.Shape, 1, 1)
		tensors[name] = v
	}
	path := filepath.Join(t.TempDir(), "cases.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tensorfile.Write(f, tensors, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// sameData compares outputs of cases that are the batch with those of cases that have a batch each:
// the same values in the same order.
func sameData(t *testing.T, batch, each toolchain.Outcome) {
	t.Helper()
	var read [2]map[string]tensor.Tensor
	for i, o := range []toolchain.Outcome{batch, each} {
		f, _ := o.File("outputs/engine/cases.safetensors")
		var err error
		if read[i], err = tensorfile.ReadFile(f.Path, tensorfile.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range read[0] {
		if got := read[1][name]; !bytes.Equal(got.Data, want.Data) {
			t.Errorf("output %s %v of cases with a batch dimension of their own differs from %v of the same cases without", name, got.Shape, want.Shape)
		}
	}
}

func (c Conformance) refuse(t *testing.T) {
	t.Helper()
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\xff\xfe this is no model in any format at all"), 0o666); err != nil {
		t.Fatal(err)
	}
	model := Input(t, toolchain.RoleModel, c.input(), c.Model)
	unknown := map[string]any{"no_such_option": true}
	maps.Copy(unknown, c.Options)
	for name, job := range map[string]toolchain.Job{
		"no model": {Verb: toolchain.VerbCompile, Options: c.Options},
		"garbage": {Verb: toolchain.VerbCompile, Options: c.Options,
			Inputs: []toolchain.Input{Input(t, toolchain.RoleModel, c.input(), garbage)}},
		"unknown option": {Verb: toolchain.VerbCompile, Options: unknown, Inputs: []toolchain.Input{model}},
		"other verb":     {Verb: toolchain.VerbImport, Inputs: []toolchain.Input{model}},
		"no cases": {Verb: toolchain.VerbRun, Inputs: []toolchain.Input{Input(t, toolchain.RoleModel, c.Profile.Entry, garbage)},
			Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "engine", Path: c.Profile.Entry}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			_, err := c.New().Do(t.Context(), job, out)
			if err == nil || !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("error %v, want CodeInvalid", err)
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("it left %v (%v)", left, err)
			}
		})
	}
}

// cancel ends a job in progress. [Main] checks that nothing remains of it.
func (c Conformance) cancel(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	out := t.TempDir()
	job := toolchain.Job{Verb: toolchain.VerbCompile, Options: c.Options,
		Inputs: []toolchain.Input{Input(t, toolchain.RoleModel, c.input(), c.Model)}}
	if _, err := c.New().Do(ctx, job, out); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
	if left, err := os.ReadDir(out); err != nil || ctx.Err() != nil && len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
}
