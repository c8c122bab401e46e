//go:build cgo && linux

package architectures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/verify"
)

// batches are the sizes in which a plain load runs cases.
var batches = []int{1, 4}

// variants are how engines are built, as a spec says it.
var variants = map[string]string{
	"fp32": "fp32", "fp16": "fp16", "int8-static": "{name: int8-static, quantize: {method: static}}",
	"int8-dynamic": "{name: int8-dynamic, quantize: {method: dynamic}}", "int4-weights": "{name: int4-weights, quantize: {method: weights}}",
}

var everyVariant = []string{"fp32", "fp16", "int8-static", "int8-dynamic", "int4-weights"}

// release is an architecture for one runtime, in some variants.
type release struct {
	architecture, runtime string
	model                 string // folder of the exported model
	dir                   string // folder of the spec, in which verbs run
	cache                 string
	variants              []string
	version               int
}

// target says which machines an engine of a runtime is for. OpenVINO by itself computes in bf16 where
// the processor has that.
func target(runtime string) string {
	switch runtime {
	case "onnxruntime":
		return "linux/amd64/v1"
	case "openvino":
		return "{name: other, cpu: {arch: amd64}, toolchain: openvino, load: {options: {INFERENCE_PRECISION_HINT: f32}, required: true}}"
	}
	return "{name: other, cpu: {arch: amd64}, toolchain: " + runtime + "}"
}

// said is what a verb printed, as JSON.
type said struct {
	Ref     string                  `json:"ref"`
	Failed  []build.FailedEngine    `json:"failed"`
	Engines []verify.VerifiedEngine `json:"engines"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (s said) failure() string {
	if s.Error == nil {
		return ""
	}
	return brief(s.Error.Message)
}

// brief is the start of a message, on one line.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "…"
	}
	return text
}

// verb runs a verb of the program in the release's folder. It must print JSON, of a failure too.
func (r *release) verb(t *testing.T, args ...string) said {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programtest.Program(t), append(args, "--output", "json")...)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), programtest.Environment(r.dir, r.cache)...), "MLPROMOTE_DATA="+filepath.Join(r.dir, "data"))
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	t.Logf("mlpromote %s: %v\n%s", strings.Join(args, " "), err, errors.Bytes())
	var answer said
	if wrong := json.Unmarshal(out, &answer); wrong != nil {
		t.Fatalf("mlpromote %s: %v, %v\n%s\n%s", strings.Join(args, " "), err, wrong, out, errors.Bytes())
	}
	if err != nil && answer.Error == nil {
		t.Fatalf("mlpromote %s: %v and no error in what it says\n%s", strings.Join(args, " "), err, out)
	}
	return answer
}

var variantsLine = regexp.MustCompile(`(?m)^variants: .*$`)

var targetsLine = regexp.MustCompile(`(?m)^targets: .*$`)

var versionLine = regexp.MustCompile(`(?m)^version: .*$`)

// draft writes the spec as a user would have it written, and puts variants, calibration and target in.
func (r *release) draft(t *testing.T) {
	t.Helper()
	for _, from := range []struct{ name, to string }{{"model.onnx", "model.onnx"}, {"calibration.npz", "calibration/calibration.npz"}} {
		text, err := os.ReadFile(filepath.Join(r.model, from.name))
		to := filepath.Join(r.dir, from.to)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if s := r.verb(t, "init", "model.onnx", "--cases", filepath.Join(r.model, "cases.npz")); s.Error != nil {
		t.Fatalf("init of %s: %s", r.architecture, s.Error.Message)
	}
}

// write puts variants and a new version into the spec.
func (r *release) write(t *testing.T, names []string) {
	t.Helper()
	r.version++
	var listed []string
	for _, name := range names {
		listed = append(listed, variants[name])
	}
	path := filepath.Join(r.dir, "mlpromote.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("\ncalibration: ")) {
		text = append(text, "\ncalibration: calibration/\n"...)
	}
	text = variantsLine.ReplaceAll(text, []byte("variants: ["+strings.Join(listed, ", ")+"]"))
	text = targetsLine.ReplaceAll(text, []byte("targets: ["+target(r.runtime)+"]"))
	text = versionLine.ReplaceAll(text, []byte("version: 0."+strconv.Itoa(r.version)+".0"))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run takes a release to prod, and loads its engines plainly. Variants that cannot be built or do not
// pass are left out of the release, as their user would have to.
func (r *release) run(t *testing.T) []record {
	t.Helper()
	r.draft(t)
	records := make(map[string]*record)
	for _, name := range r.variants {
		records[name] = &record{Architecture: r.architecture, Runtime: r.runtime, Variant: name}
	}
	good := r.build(t, r.variants, records)
	for len(good) > 0 {
		before := len(good)
		good = r.verify(t, good, records)
		if len(good) == before {
			break
		}
		if len(good) > 0 { // without those that failed, since a release is promoted as a whole
			good = r.build(t, good, records)
		}
	}
	if len(good) > 0 {
		promoted := r.verb(t, "promote")
		for _, name := range good {
			records[name].Pulled = promoted.failure()
			if promoted.Error == nil {
				r.pull(t, records[name])
			}
		}
	}
	var all []record
	for _, name := range r.variants {
		all = append(all, *records[name])
	}
	return all
}

// build makes the release of what can be built, and gives the names of those variants. Where nothing
// comes of them together, each is tried alone for its reason.
func (r *release) build(t *testing.T, names []string, records map[string]*record) []string {
	t.Helper()
	r.write(t, names)
	made := r.verb(t, "build", "--keep-going")
	if made.Ref == "" && len(names) == 1 {
		records[names[0]].Error = "build: " + made.failure()
		return nil
	}
	if made.Ref == "" {
		good := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(r.build(t, []string{name}, records)) == 0 })
		if len(good) == 0 || len(good) == len(names) {
			return nil
		}
		return r.build(t, good, records)
	}
	good := slices.Clone(names)
	for _, failed := range made.Failed {
		name := variantOf(failed.Label)
		records[name].Error = "build: " + brief(failed.Reason)
		good = slices.DeleteFunc(good, func(n string) bool { return n == name })
	}
	return good
}

func variantOf(label string) string { return label[strings.LastIndexByte(label, '/')+1:] }

// verify notes the verdicts, and gives the names of those variants that passed.
func (r *release) verify(t *testing.T, names []string, records map[string]*record) []string {
	t.Helper()
	verified := r.verb(t, "verify", "--sensitivity", "0")
	var good []string
	seen := make(map[string]bool)
	for _, e := range verified.Engines {
		of := records[variantOf(e.Label)]
		seen[of.Variant] = true
		of.Verdict, of.Reason, of.Outputs, of.Checks, of.P50Ns = e.Parity.Verdict, "", e.Parity.Outputs, e.Parity.Checks.OfCases(), e.Performance.Latency.P50Ns
		if of.verified() {
			good = append(good, of.Variant)
			continue
		}
		for _, reason := range e.Parity.Reasons[:min(len(e.Parity.Reasons), 1)] {
			of.Reason = brief(reason.Message)
		}
	}
	for _, name := range names {
		if !seen[name] {
			records[name].Error = "verify: " + verified.failure()
		}
	}
	return good
}

// pull brings an engine into a folder, and loads it there without anything of ours.
func (r *release) pull(t *testing.T, of *record) {
	t.Helper()
	folder := filepath.Join(r.dir, "pulled", of.Variant)
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	pulled := r.verb(t, "pull", "model", "--env", "prod", "--variant", of.Variant, "-o", folder)
	if pulled.Error != nil {
		of.Pulled = pulled.failure()
		return
	}
	of.Pulled, of.Plain = "yes", make(map[int]string)
	for _, size := range batches {
		figures, err := r.plain(t, folder, size)
		switch {
		case err != nil:
			of.Plain[size] = brief(err.Error())
		default:
			of.Plain[size] = within(figures, of.Checks)
		}
		if size == 1 {
			of.Torch = figures
		}
	}
}

// plain runs testdata/load.py by the runtime's own Python.
func (r *release) plain(t *testing.T, folder string, size int) (map[string]plainFigures, error) {
	t.Helper()
	installs := &install.Installer{Root: programtest.Cache(t)}
	of, python := r.runtime, "onnxruntime"
	if of != "onnxruntime-web" {
		python = of
	}
	with, err := installs.Find(python)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), with.Interpreter(), "testdata/load.py", of, folder, r.model, strconv.Itoa(size))
	cmd.Env = append(os.Environ(), "HOME="+r.dir)
	if of == "onnxruntime-web" {
		web, err := installs.Find(of)
		if err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, "NODE="+web.Interpreter(), "NODE_MODULES="+filepath.Join(web.Dir, "node_modules"))
	}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(errors.String()), "\n")
		return nil, fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	var figures map[string]plainFigures
	if err := json.Unmarshal(out[max(bytes.LastIndexByte(bytes.TrimSpace(out), '\n'), 0):], &figures); err != nil {
		return nil, fmt.Errorf("%w in %s", err, out)
	}
	return figures, nil
}
