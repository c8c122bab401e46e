//go:build cgo

package ort_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// nodeTests are the tests that testdata/nodetests.py left.
type nodeTests struct {
	ONNX, ONNXRuntime string
	Tests             []nodeTest
}

// nodeTest is one of ONNX's backend node tests. What is said of it is "pass", "fail: how" or "error: why".
type nodeTest struct {
	Name       string
	RTol, ATol float64
	Sets       int    // of inputs and outputs
	Unfit      string // why the runner cannot be given it; empty where it can
	Runtime    string // what ONNX Runtime's own Python says, without optimizations
	Evaluator  string // what ONNX's reference evaluator says
	runner     string // what our runner says
}

func passes(said string) bool { return said == "pass" }

// wrong reports whether a test ran and gave other values than ONNX defines.
func wrong(said string) bool { return strings.HasPrefix(said, "fail: ") }

// knownDifferences explains what ONNX Runtime's Python passes and the runner does not, by a part of what is said.
var knownDifferences = map[string]string{
	"has text":              "inputs or outputs are text, for which cases and outputs have no type",
	"has a value of type":   "inputs or outputs are sequences or optional values; an engine has tensors only",
	"has elements of type":  "cases and outputs have no word for this type of elements",
	"no inputs or no outpu": "a graph without inputs, which computes a constant",
}

// Every node test that ONNX Runtime's own Python passes without optimizations passes through the runner, but for
// the known differences. `go test` runs a sample; MLPROMOTE_NODE_TESTS=FILE runs all of them and writes the table.
func TestNodeTests(t *testing.T) {
	t.Parallel()
	const sample, seed = 60, 20
	file, count := os.Getenv("MLPROMOTE_NODE_TESTS"), sample
	if file != "" {
		count = 0
	}
	dir := t.TempDir()
	all := generateNodeTests(t, dir, count, seed)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	driver := ort.New(ort.Options{Installs: toolchaintest.Installer(t, ort.Name)})
	for i := range all.Tests {
		n := &all.Tests[i]
		group.Go(func() error {
			n.runner = runNodeTest(t.Context(), t, driver, filepath.Join(dir, n.Name), *n)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, n := range all.Tests {
		if passes(n.runner) {
			passed++
		}
		if passes(n.Runtime) && !passes(n.runner) && explanation(n.runner) == "" {
			t.Errorf("%s passes in ONNX Runtime's Python; through the runner: %s", n.Name, n.runner)
		}
	}
	if passed == 0 || len(all.Tests) < count {
		t.Errorf("%d of %d tests passed, want some of at least %d", passed, len(all.Tests), count)
	}
	if file == "" {
		return
	}
	if err := os.WriteFile(file, []byte(nodeTestsPage(all)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// generateNodeTests has the onnx package make count of its node tests, or all for 0.
func generateNodeTests(t *testing.T, dir string, count, seed int) nodeTests {
	t.Helper()
	record, err := toolchaintest.Installer(t, ort.Name).Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), record.Interpreter(), "-s", "-P", "-B",
		"testdata/nodetests.py", dir, strconv.Itoa(count), strconv.Itoa(seed)).CombinedOutput()
	if err != nil {
		t.Fatalf("generate node tests: %v:\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all nodeTests
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// runNodeTest runs the data sets of a test and says how it came out.
func runNodeTest(ctx context.Context, t *testing.T, driver toolchain.Driver, dir string, n nodeTest) string {
	t.Helper()
	if n.Unfit != "" {
		return "error: " + n.Unfit
	}
	for set := range n.Sets {
		name := fmt.Sprintf("case-%d.safetensors", set)
		job := toolchain.Job{Verb: toolchain.VerbRun,
			Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "node", Path: "model.onnx"}}, Level: "disable_all"},
			Inputs: []toolchain.Input{
				toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", filepath.Join(dir, "model.onnx")),
				toolchaintest.Input(t, toolchain.RoleCases, name, filepath.Join(dir, name))}}
		outcome, err := driver.Do(ctx, job, filepath.Join(dir, fmt.Sprintf("out-%d", set)))
		if err != nil {
			return "error: " + strings.Join(strings.Fields(err.Error()), " ")
		}
		got, ok := outcome.File("outputs/node/" + name)
		if !ok {
			return "error: no outputs"
		}
		if said := compareNodeTest(filepath.Join(dir, fmt.Sprintf("want-%d.safetensors", set)), got.Path, n); !passes(said) {
			return said
		}
	}
	return "pass"
}

// compareNodeTest compares the outputs of a data set as ONNX's own runner of these tests does.
func compareNodeTest(want, got string, n nodeTest) string {
	wants, err := tensorfile.ReadFile(want, tensorfile.Limits{})
	gots, err2 := tensorfile.ReadFile(got, tensorfile.Limits{})
	if err := errors.Join(err, err2); err != nil {
		return "error: " + err.Error()
	}
	for name, w := range wants {
		g, ok := gots[name]
		if !ok || g.DType != w.DType {
			return fmt.Sprintf("fail: output %s is %q, want %q", name, g.DType, w.DType)
		}
		comparison := tensor.NewComparison(tensor.Options{RTol: n.RTol, ATol: n.ATol})
		if err := comparison.Add(0, w, g); err != nil {
			return "fail: " + err.Error()
		}
		if r := comparison.Result(); r.Failed > 0 || math.IsInf(r.MaxAbs, 1) {
			return fmt.Sprintf("fail: %d of %d elements", r.Failed, r.Elements)
		}
	}
	return "pass"
}

// explanation says why a difference is known; empty where it is not.
func explanation(said string) string {
	for part, why := range knownDifferences {
		if strings.Contains(said, part) {
			return why
		}
	}
	return ""
}

// nodeTestsPage is the page of results.
func nodeTestsPage(all nodeTests) string {
	count := func(is func(nodeTest) bool) int {
		return len(slices.DeleteFunc(slices.Clone(all.Tests), func(n nodeTest) bool { return !is(n) }))
	}
	var page strings.Builder
	fmt.Fprintf(&page, `# ONNX's backend node tests

`+"`make node-tests`"+` wrote this page. The tests are generated from the code of onnx %s and run by onnxruntime %s without graph
optimizations, as the reference model is run: by its own Python, and by the runner that makes golden outputs and verifies engines. A test passes
if types and shapes are equal and every element is within the test's own tolerance.

| | tests | pass | other values | do not run |
|---|---|---|---|---|
`, all.ONNX, all.ONNXRuntime)
	for _, row := range []struct {
		name string
		said func(nodeTest) string
	}{
		{"ONNX Runtime's own Python", func(n nodeTest) string { return n.Runtime }},
		{"our runner", func(n nodeTest) string { return n.runner }},
		{"ONNX's reference evaluator", func(n nodeTest) string { return n.Evaluator }},
	} {
		pass, other := count(func(n nodeTest) bool { return passes(row.said(n)) }), count(func(n nodeTest) bool { return wrong(row.said(n)) })
		fmt.Fprintf(&page, "| %s | %d | %d | %d | %d |\n", row.name, len(all.Tests), pass, other, len(all.Tests)-pass-other)
	}
	fit := func(said func(nodeTest) string) int {
		return count(func(n nodeTest) bool { return n.Unfit == "" && passes(said(n)) })
	}
	fmt.Fprintf(&page,
		"\nOf the %d tests whose inputs and outputs are tensors of types that cases have, Python passes %d and our runner %d.\nWhat neither runs needs an operator, a type or a version of ONNX that this ONNX Runtime does not have.\n",
		count(func(n nodeTest) bool { return n.Unfit == "" }),
		fit(func(n nodeTest) string { return n.Runtime }), fit(func(n nodeTest) string { return n.runner }))
	page.WriteString("\n## Tests that one passes and the other does not\n\n| who passes | tests | why the other does not |\n|---|---|---|\n")
	reasons := make(map[string]int)
	for _, n := range all.Tests {
		switch {
		case passes(n.Runtime) && !passes(n.runner):
			reasons["Python|"+explanation(n.runner)]++
		case !passes(n.Runtime) && passes(n.runner):
			reasons["runner|"+pythonReason(n.Runtime)]++
		}
	}
	for _, key := range sortedKeys(reasons) {
		who, why, _ := strings.Cut(key, "|")
		fmt.Fprintf(&page, "| %s | %d | %s |\n", who, reasons[key], why)
	}
	page.WriteString(`
## Values that ONNX does not define

Tests that run in ONNX Runtime and give other values than ONNX says. The cross-check of a build computes the values of ONNX where the last column
says pass. It compares with a tolerance that follows the range of an output, so that small differences are within it.

| test | ONNX Runtime | our runner | evaluator |
|---|---|---|---|
`)
	for _, n := range all.Tests {
		if wrong(n.Runtime) || wrong(n.runner) {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", n.Name, n.Runtime, n.runner, n.Evaluator)
		}
	}
	page.WriteString("\n## What the evaluator itself gets wrong\n\nTests of ONNX that its evaluator does not pass. Text cannot be an output of a release, and what is random is never cross-checked.\n\n| test | evaluator | ONNX Runtime |\n|---|---|---|\n")
	for _, n := range all.Tests {
		if wrong(n.Evaluator) {
			fmt.Fprintf(&page, "| %s | %s | %s |\n", n.Name, n.Evaluator, short(n.Runtime))
		}
	}
	return page.String()
}

// pythonReason shortens what Python says where it does not run a test.
func pythonReason(said string) string {
	if wrong(said) {
		return "other values"
	}
	return "it cannot pass values of this type in or out"
}

// short is what is said up to the first details.
func short(said string) string {
	head, _, _ := strings.Cut(said, " : ")
	return head
}

func sortedKeys(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
