//go:build cgo

package validation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
)

// trainedKinds are the kinds of models in testdata/trained, in the order in which they run.
var trainedKinds = []string{
	"cnn", "text", "fraud", "price", "segmentation", "recurrent", "detection", "trees", "vit", "decoder", "trees-regressor", "audio", "embedding",
}

// numpyKinds are trained without PyTorch.
var numpyKinds = []string{"trees", "trees-regressor", "price"}

// treeKinds have no operators that a quantizer or another runtime takes: they are built in fp32 alone.
var treeKinds = []string{"trees", "trees-regressor"}

// openvinoKinds are also built for OpenVINO.
var openvinoKinds = []string{"cnn", "segmentation", "price"}

// narrowCalibration is the fault of a calibration that lacks most of the range of the inputs.
const narrowCalibration = "narrow-calibration"

// python returns the interpreter that trains models of a kind: for most one with PyTorch, which Debian packages.
func python(t *testing.T, kind string) string {
	t.Helper()
	if slices.Contains(numpyKinds, kind) {
		return interpreter(t)
	}
	const system = "/usr/bin/python3"
	if out, err := exec.CommandContext(t.Context(), system, "-c", "import torch, numpy").CombinedOutput(); err != nil {
		t.Fatalf("%s cannot import torch, which trains models of kind %s: %v\n%s\ninstall it: as root, sh tools/setup.sh torch (Debian's python3-torch)",
			system, kind, err, out)
	}
	return system
}

// interpreter returns the Python of the toolchain onnxruntime, which has numpy and onnx.
func interpreter(t *testing.T) string {
	t.Helper()
	record, err := toolchaintest.Installer(t, ort.Name).Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	return record.Interpreter()
}

// trained is a model that was trained, with its faults.
type trained struct {
	kind     string
	seed     int
	dir      string
	Faults   []string `json:"faults"`
	Labelled bool     `json:"labelled"` // its cases have labels that init takes
}

// aboutFile is the file that train.py writes last.
func aboutFile(folder, kind string, seed int) string {
	return filepath.Join(folder, fmt.Sprintf("%s-%d", kind, seed), "about.json")
}

// trainedModel trains a model, or finds the one that an earlier run left in the folder. init drafts its spec, from its cases and their
// labels.
func trainedModel(t *testing.T, folder, kind string, seed int) trained {
	t.Helper()
	about := aboutFile(folder, kind, seed)
	m := trained{kind: kind, seed: seed, dir: filepath.Dir(about)}
	if _, err := os.Stat(about); errors.Is(err, fs.ErrNotExist) {
		cmd := exec.CommandContext(t.Context(), python(t, kind), "testdata/trained/train.py", kind, fmt.Sprint(seed), m.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	text, err := os.ReadFile(about)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil {
		err = m.draft()
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// draft writes the spec as `mlpromote init model.onnx --cases cases.npz --label label` does; without labels, as init without --label.
func (m trained) draft() error {
	path, cases := filepath.Join(m.dir, spec.File), filepath.Join(m.dir, "cases")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.RemoveAll(cases); err != nil {
		return err
	}
	opened, err := draft.Open(filepath.Join(m.dir, "model.onnx"))
	if err != nil {
		return err
	}
	label := ""
	if m.Labelled {
		label = "label"
	}
	imported, err := opened.ImportCases(filepath.Join(m.dir, "cases.npz"), label, cases)
	if err != nil {
		return err
	}
	drafted, err := opened.Draft(path, "linux/amd64/v1", &imported, cases)
	if err != nil {
		return err
	}
	return os.WriteFile(path, drafted.Text, 0o600)
}

// trainedTask is one release of a trained model.
type trainedTask struct {
	kind     string
	seed     int
	fault    string // empty: honest
	runtime  string
	variants []string
}

func (k trainedTask) String() string {
	return fmt.Sprintf("%s-%d/%s/%s/%s", k.kind, k.seed, k.runtime, strings.Join(k.variants, "+"), orHonest(k.fault))
}

// spec changes the drafted spec as users do: variants, calibration and targets.
func (k trainedTask) spec(drafted string) (string, error) {
	const oneVariant, oneTarget = "variants: [fp32]\n", "targets: [linux/amd64/v1]\n"
	if !strings.Contains(drafted, oneVariant) || !strings.Contains(drafted, oneTarget) {
		return "", fmt.Errorf("expected the drafted spec to have %q and %q, found:\n%s", oneVariant, oneTarget, drafted)
	}
	var all []string
	for _, v := range k.variants {
		all = append(all, variants[v])
	}
	text := strings.Replace(drafted, oneVariant, "variants: ["+strings.Join(all, ", ")+"]\n", 1)
	if slices.ContainsFunc(k.variants, func(v string) bool { return strings.HasPrefix(v, "int8") }) {
		calibration := "calibration"
		if k.fault == narrowCalibration {
			calibration = "narrow"
		}
		text += "calibration: {path: " + calibration + "/}\n"
	}
	if k.runtime == "openvino" { // by itself it computes in bf16 if the processor has that
		text = strings.Replace(text, oneTarget,
			"targets: [{name: other, os: linux, cpu: {arch: amd64}, toolchain: openvino, load: {options: {INFERENCE_PRECISION_HINT: f32}, required: true}}]\n", 1)
	}
	return text, nil
}

// runTrained builds and verifies a task, and measures the effect of each engine on the task of the model. Variants that cannot be built
// together are built alone.
func runTrained(t *testing.T, m trained, task trainedTask) []engineRecord {
	t.Helper()
	all := together(task.variants, func(variants []string) ([]engineRecord, error) {
		some := task
		some.variants = variants
		return tryTrained(t, m, some)
	}, func(variant string, err error) engineRecord {
		r := task.record(variant)
		r.Error = err.Error()
		return r
	})
	for i := range all {
		all[i].Task = task.String()
	}
	return all
}

func tryTrained(t *testing.T, m trained, task trainedTask) ([]engineRecord, error) {
	t.Helper()
	s, f, err := task.prepare(m)
	if err != nil {
		return nil, err
	}
	kept := &keeper{dir: t.TempDir(), lock: new(sync.Mutex)}
	env := newPipeline(t, func(d toolchain.Driver) toolchain.Driver { return keeping{f.around(d), kept} })
	built, err := build.Build(t.Context(), env, s, build.Options{})
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	verified, err := verify.Verify(t.Context(), env, built.Ref)
	if err != nil && !registry.HasCode(err, registry.CodeLimit) {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if f.model != "" && f.hits.Load() == 0 {
		return nil, errors.New("the fault was not put in")
	}
	if len(verified.Engines) != len(task.variants) {
		return nil, fmt.Errorf("%d engines were verified, want %d", len(verified.Engines), len(task.variants))
	}
	var all []engineRecord
	for i, e := range verified.Engines {
		r := task.record(e.Label[strings.LastIndexByte(e.Label, '/')+1:])
		r.note(e)
		if r.Effect, err = effectOf(t, m, filepath.Join(kept.dir, verify.EngineID(i))); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Variant, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// prepare writes and loads the spec of a task, and makes its fault.
func (k trainedTask) prepare(m trained) (*spec.Spec, fault, error) {
	drafted, err := os.ReadFile(filepath.Join(m.dir, spec.File))
	if err != nil {
		return nil, fault{}, err
	}
	text, err := k.spec(string(drafted))
	if err != nil {
		return nil, fault{}, err
	}
	path := filepath.Join(m.dir, "mlpromote-"+strings.NewReplacer("/", "-", "+", "-").Replace(k.String())+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, fault{}, err
	}
	defer os.Remove(path)
	s, err := spec.Load(path, spec.Options{})
	if err != nil {
		return nil, fault{}, err
	}
	source, err := toolchain.FileInput(toolchain.RoleModel, "model.onnx", filepath.Join(m.dir, "model.onnx"))
	f := fault{source: source.Digest, runs: new(atomic.Uint64), hits: new(atomic.Uint64)}
	if k.fault != "" && k.fault != narrowCalibration {
		f.model = filepath.Join(m.dir, "faults", k.fault+".onnx")
	}
	return s, f, err
}

// keeper keeps the outputs that engines computed for the cases.
type keeper struct {
	dir  string
	lock *sync.Mutex
}

// keeping is a driver with a keeper.
type keeping struct {
	toolchain.Driver
	*keeper
}

func (d keeping) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	outcome, err := d.Driver.Do(ctx, job, outDir)
	if err != nil || job.Verb != toolchain.VerbRun {
		return outcome, err
	}
	for _, e := range job.Run.Engines {
		for _, in := range job.Inputs {
			if in.Role != toolchain.RoleCases || strings.HasPrefix(in.Name, "check-") {
				continue
			}
			if err := d.keep(e.ID, in.Name, filepath.Join(outDir, "outputs", e.ID, in.Name)); err != nil {
				return toolchain.Outcome{}, err
			}
		}
	}
	return outcome, nil
}

// keep copies a file of outputs, unless it has one with that name.
func (k *keeper) keep(engine, name, from string) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	to := filepath.Join(k.dir, engine, filepath.Base(name))
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// effectOf measures the outputs of an engine by the task of the model.
func effectOf(t *testing.T, m trained, outputs string) (effect, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter(t), "testdata/trained/judge.py", m.kind, m.dir, outputs)
	out, err := cmd.Output()
	if err != nil {
		failed := new(exec.ExitError)
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w\n%s", err, failed.Stderr)
		}
		return effect{}, fmt.Errorf("%v: %w", cmd, err)
	}
	var e effect
	return e, json.Unmarshal(out, &e)
}
