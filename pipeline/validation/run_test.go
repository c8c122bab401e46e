//go:build cgo

package validation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// families are those of testdata/models.py.
var families = []string{"classifier", "regressor", "encoder", "recurrent", "tagger"}

// rareFamily has so few cases of a class that only an engine with the bits of the reference keeps its limit on accuracy. It has no faults.
const rareFamily = "fraud"

// variants are how engines are built, as a spec says it.
var variants = map[string]string{
	"fp32": "fp32", "fp16": "fp16", "int8-static": "{name: int8-static, quantize: {method: static}}",
	"int8-dynamic": "{name: int8-dynamic, quantize: {method: dynamic}}", "int4-weights": "{name: int4-weights, quantize: {method: weights}}",
	"int8-channels": "{name: int8-channels, quantize: {method: static, per_channel: true}}",
}

// everyVariant lists those of the long form.
var everyVariant = []string{"fp32", "fp16", "int8-static", "int8-channels", "int8-dynamic", "int4-weights"}

// saturating is the fault of a calibration on inputs that are 20 times too small.
const saturating = "saturating-calibration"

// wrapped are the faults that no graph has.
var wrapped = map[string]func(uint64, map[string]tensor.Tensor){
	"stale-row": stale, "jitter-0.001": jitter(0.001), "jitter-0.1": jitter(0.1), "jitter-1": jitter(1), oneLoad: jitter(1),
}

// oneLoad is the fault of an engine that computes something else in one of its loads.
const oneLoad = "one-load"

// task is one release: a model in some variants for one runtime, honest or with a fault.
type task struct {
	family   string
	seed     int
	fault    string // empty: honest
	runtime  string
	variants []string
}

func (t task) String() string {
	return fmt.Sprintf("%s-%d/%s/%s/%s", t.family, t.seed, t.runtime, strings.Join(t.variants, "+"), orHonest(t.fault))
}

func orHonest(fault string) string {
	if fault == "" {
		return "honest"
	}
	return fault
}

// about is what testdata/models.py says of a model.
type about struct {
	Spec   string   `json:"spec"`
	Faults []string `json:"faults"`
	dir    string
}

// model writes a model, or finds the one that an earlier run wrote in the folder.
func model(t *testing.T, folder, family string, seed int) about {
	t.Helper()
	made := about{dir: filepath.Join(folder, fmt.Sprintf("%s-%d", family, seed))}
	file := filepath.Join(made.dir, "about.json")
	if _, err := os.Stat(file); err != nil {
		record, err := toolchaintest.Installer(t, ort.Name).Find(ort.Name)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), record.Interpreter(), "testdata/models.py", family, fmt.Sprint(seed), made.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// runTask builds and verifies a task, and records what came of each engine.
func runTask(t *testing.T, of about, task task) []record {
	t.Helper()
	all := together(task.variants, func(variants []string) ([]record, error) {
		some := task
		some.variants = variants
		return try(t, of, some)
	}, func(variant string, err error) record {
		r := task.record(variant)
		r.Error = err.Error()
		return r
	})
	for i := range all {
		all[i].Task = task.String()
	}
	return all
}

// together tries variants in one release. Where they cannot be built together, each is built alone.
func together[R any](variants []string, try func([]string) ([]R, error), failed func(variant string, err error) R) []R {
	all, err := try(variants)
	switch {
	case err == nil:
		return all
	case len(variants) == 1:
		return []R{failed(variants[0], err)}
	}
	all = nil
	for _, variant := range variants {
		all = append(all, together([]string{variant}, try, failed)...)
	}
	return all
}

func (t task) record(variant string) record {
	return record{Task: t.String(), Family: t.family, Seed: t.seed, Fault: t.fault, Runtime: t.runtime, Variant: variant}
}

func try(t *testing.T, of about, task task) ([]record, error) {
	t.Helper()
	f, text, err := task.prepare(of)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(of.dir, "mlpromote-"+strings.NewReplacer("/", "-", "+", "-").Replace(task.String())+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(path)
	s, err := spec.Load(path, spec.Options{})
	if err != nil {
		return nil, err
	}
	env := newPipeline(t, f.around)
	built, err := build.Build(t.Context(), env, s, build.Options{})
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	verified, err := verify.Verify(t.Context(), env, built.Ref)
	if err != nil && !registry.HasCode(err, registry.CodeLimit) {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if (f.model != "" || f.change != nil) && f.hits.Load() == 0 {
		return nil, errors.New("the fault was not put in")
	}
	var all []record
	for _, e := range verified.Engines {
		r := task.record(e.Label[strings.LastIndexByte(e.Label, '/')+1:])
		r.note(e)
		all = append(all, r)
	}
	if len(all) != len(task.variants) {
		return nil, fmt.Errorf("%d engines were verified, want %d", len(all), len(task.variants))
	}
	return all, nil
}

// prepare makes the fault and the spec of a task.
func (t task) prepare(of about) (fault, string, error) {
	source, err := toolchain.FileInput(toolchain.RoleModel, "model.onnx", filepath.Join(of.dir, "model.onnx"))
	f := fault{source: source.Digest, runs: new(atomic.Uint64), hits: new(atomic.Uint64), change: wrapped[t.fault]}
	if slices.Contains(of.Faults, t.fault) {
		f.model = filepath.Join(of.dir, "faults", t.fault+".onnx")
	}
	calibration := "calibration"
	if t.fault == oneLoad {
		f.loads = "-load-3"
	}
	if t.fault == saturating {
		calibration = "saturating"
	}
	text := of.Spec + "calibration: " + calibration + "/\nvariants: ["
	for i, v := range t.variants {
		if i > 0 {
			text += ", "
		}
		text += variants[v]
	}
	target := "linux/amd64/v1"
	if t.runtime != ort.Name {
		target = "{name: other, os: linux, cpu: {arch: amd64}, toolchain: " + t.runtime + "}"
	}
	if t.runtime == "openvino" { // by itself it computes in bf16 where the processor has that
		target = strings.TrimSuffix(target, "}") + ", load: {options: {INFERENCE_PRECISION_HINT: f32}, required: true}}"
	}
	return f, text + "]\ntargets: [" + target + "]\n", err
}
