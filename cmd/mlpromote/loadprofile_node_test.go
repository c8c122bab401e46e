//go:build cgo

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
)

// TestNodesPageLoadsByProfile executes the Python of docs/how-to/nodes.md, as it stands there, on folders
// that pull made of an engine with a load profile and of one without; both have names of classes.
func TestNodesPageLoadsByProfile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(programtest.Root("docs", "how-to", "nodes.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("docs/how-to/nodes.md has %d blocks of Python, want that of load profiles and that of labels", len(blocks))
	}
	dir := t.TempDir()
	if err := programtest.Digits(dir); err != nil {
		t.Fatal(err)
	}
	cache := programtest.Cache(t)
	record, err := (&install.Installer{Root: cache}).Find("onnxruntime")
	if err != nil {
		t.Skipf("onnxruntime is not installed: %v", err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), append(programtest.Environment(dir, cache), "OMP_NUM_THREADS=")...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	const spec = `model: vision/digits
version: 1.0.0
source: digits.onnx
cases: {path: cases/, labels: label}
calibration: calibration/
variants:
  - name: fp32
    load:
      options: {graph_optimization_level: basic, intra_op_num_threads: 1, session.set_denormal_as_zero: 1}
      env: {OMP_NUM_THREADS: 1}
  - int8
targets: [linux/amd64/v1]
outputs: {logits: {kind: scores, labels: [zero, one, two, three, four, five, six, seven, eight, nine]}}
`
	if err := os.WriteFile(filepath.Join(dir, "mlpromote.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	program := programtest.Program(t)
	run(program, "build")
	for variant, want := range map[string]string{
		"fp32": `["GraphOptimizationLevel.ORT_ENABLE_BASIC", 1, "1", "1"]`,
		"int8": `["GraphOptimizationLevel.ORT_ENABLE_ALL", 0, null, null]`,
	} {
		said := run(program, "pull", "vision/digits", "--env", "staging", "--variant", variant, "-o", variant)
		if has := strings.Contains(said, "was proven by its load profile"); has != (variant == "fp32") {
			t.Errorf("pull of %s said: %s", variant, said)
		}
		script := string(blocks[0][1]) + string(blocks[1][1]) + `
s = session("` + variant + `")
o = s.get_session_options()
try:
    denormals = o.get_session_config_entry("session.set_denormal_as_zero")
except Exception:
    denormals = None
import numpy
(logits,) = s.run(["logits"], {"image": numpy.zeros((1, 1, 8, 8), "float32")})
assert logits.shape == (1, 10), logits.shape
assert answers("` + variant + `", "logits", numpy.eye(10)[[7, 0]]) == ["seven", "zero"]
assert answers("` + variant + `", "logits", logits)[0] == names("` + variant + `", "logits")[logits[0].argmax()]
print(json.dumps([str(o.graph_optimization_level), o.intra_op_num_threads, denormals, os.environ.get("OMP_NUM_THREADS") or None]))
`
		got := strings.TrimSpace(run(record.Interpreter(), "-c", script))
		if !json.Valid([]byte(got)) || got != want {
			t.Errorf("%s was loaded with %s, want %s", variant, got, want)
		}
	}
}
