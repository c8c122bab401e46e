//go:build cgo

package validation_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// honestSeeds is how many models of each family the long form has.
const honestSeeds = 10

// others are the variants that the other runtimes take.
var others = map[string][]string{"openvino": {"fp32", "fp16", "int8-static"}, "iree": {"fp32"}, "litert": {"fp32"}}

// TestValidation is the long form, of `make validation`: all models, variants and faults, and every
// runtime that is installed. MLPROMOTE_VALIDATION is a folder for models and results, from which it
// goes on where it was stopped. MLPROMOTE_VALIDATION_PAGE is the page that it writes.
func TestValidation(t *testing.T) {
	folder := os.Getenv("MLPROMOTE_VALIDATION")
	if folder == "" {
		t.Skip("the long form runs by make validation")
	}
	done, err := openResults[record](filepath.Join(folder, fmt.Sprintf("results-%s-%d.jsonl", rules(t), firstSeed(t))), programID(t))
	if err != nil {
		t.Fatal(err)
	}
	until := deadline(t)
	all := everything(t, filepath.Join(folder, "models"))
	if only := os.Getenv("MLPROMOTE_VALIDATION_ONLY"); only != "" {
		runOnly(t, filepath.Join(folder, "models"), only, all)
		return
	}
	for i, task := range all {
		if done.done[task.String()] {
			continue
		}
		if !until.IsZero() && time.Now().After(until) {
			t.Logf("stopped after %d of %d: run it again to go on", i, len(all))
			break
		}
		began := time.Now()
		made := runTask(t, model(t, filepath.Join(folder, "models"), task.family, task.seed), task)
		for i := range made {
			made[i].Program = done.program
		}
		if err := done.add(made); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s, %v\n", i+1, len(all), task, time.Since(began).Round(time.Millisecond))
	}
	if path := os.Getenv("MLPROMOTE_VALIDATION_PAGE"); path != "" {
		writePage(t, path, done.records, fmt.Sprintf("%d of %d releases", tasksIn(done.records), len(all)))
	}
}

// programID names the program that judges, so that results of several are never taken for those of one:
// MLPROMOTE_VALIDATION_PROGRAM, which is the commit, else the digest of this test.
func programID(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("MLPROMOTE_VALIDATION_PROGRAM"); named != "" {
		return named
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(program))[:12]
}

// runOnly runs the engines whose name matches a pattern, each alone, and says what came of them: for
// looking into a result. It records nothing.
func runOnly(t *testing.T, folder, only string, all []task) {
	t.Helper()
	pattern, err := regexp.Compile(only)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range all {
		for _, variant := range task.variants {
			one := task
			one.variants = []string{variant}
			if !pattern.MatchString(one.String()) {
				continue
			}
			for _, r := range runTask(t, model(t, folder, task.family, task.seed), one) {
				text, err := json.MarshalIndent(r, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %s", one, text)
			}
		}
	}
}

// firstSeed is the seed of the first model of each family: MLPROMOTE_VALIDATION_SEED, else 1. Models
// of other seeds say what the limits do to models that they were not set with.
func firstSeed(t *testing.T) int {
	t.Helper()
	text := os.Getenv("MLPROMOTE_VALIDATION_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.Atoi(text)
	if err != nil || seed < 1 {
		t.Fatalf("MLPROMOTE_VALIDATION_SEED is %q, want a positive number", text)
	}
	return seed
}

// tasksIn counts the releases that records are of.
func tasksIn(records []record) int {
	seen := make(map[string]bool)
	for _, r := range records {
		seen[r.Task] = true
	}
	return len(seen)
}

// deadline is when the long form stops and writes what it has: after MLPROMOTE_VALIDATION_TIME, such as 30m; zero for never.
func deadline(t *testing.T) time.Time {
	t.Helper()
	text := os.Getenv("MLPROMOTE_VALIDATION_TIME")
	if text == "" {
		return time.Time{}
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().Add(length)
}

func isInstalled(t *testing.T, runtime string) bool {
	t.Helper()
	root, err := installed.Root(os.Getenv("MLPROMOTE_TEST_CACHE"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&install.Installer{Root: root}).Find(runtime)
	return err == nil
}

// rules names the default limits: what was judged by others is judged again.
func rules(t *testing.T) string {
	t.Helper()
	hash := sha256.New()
	for _, precision := range validators.Precisions() {
		for _, kind := range validators.Kinds() {
			for _, width := range []int64{1, 10} {
				shape := []validators.Dim{{Symbol: "batch"}, {Size: width}}
				limits, err := validators.DefaultLimits(precision, validators.TensorInfo{Name: "y", Kind: kind, DType: tensor.Float32, Shape: shape}, 400)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(limits)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(hash, "%s %s %d %s\n", precision, kind, width, text)
			}
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:6])
}

// everything lists the tasks of the long form, mixed so that a part of them says something of all.
func everything(t *testing.T, folder string) []task {
	t.Helper()
	var honest, faulty, elsewhere []task
	first := firstSeed(t)
	for seed := first; seed < first+honestSeeds; seed++ {
		for _, family := range families {
			honest = append(honest, task{family, seed, "", ort.Name, everyVariant})
		}
	}
	for n, family := range families {
		faults := append(model(t, folder, family, first).Faults, "stale-row", "jitter-0.001", "jitter-0.1", "jitter-1", oneLoad)
		for i, fault := range faults {
			third := []string{"fp16", "int8-dynamic", "int4-weights"}[(i+n)%3]
			faulty = append(faulty, task{family, first, fault, ort.Name, []string{"fp32", "int8-static", third}})
		}
		faulty = append(faulty, task{family, first, saturating, ort.Name, []string{"int8-static", "int8-channels"}})
	}
	for _, runtime := range slices.Sorted(maps.Keys(others)) {
		if !isInstalled(t, runtime) {
			continue
		}
		for _, family := range families {
			elsewhere = append(elsewhere, task{family, first, "", runtime, others[runtime]})
			for _, fault := range []string{"outputs-swapped", "frozen-branch"} {
				elsewhere = append(elsewhere, task{family, first, fault, runtime, others[runtime]})
			}
		}
	}
	for seed := first; seed < first+honestSeeds; seed++ {
		honest = append(honest, task{rareFamily, seed, "", ort.Name, []string{"fp32"}})
	}
	order := rand.New(rand.NewPCG(uint64(first), 1))
	all := slices.Concat(honest[len(families):], faulty, elsewhere)
	order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return append(honest[:len(families)], all...)
}

// measuredOn returns the versions of runtimes and the kind of this machine, as a page names them.
func measuredOn(t *testing.T, runtimes map[string]bool) (versions, machine string) {
	t.Helper()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		installed, err := toolchaintest.Installer(t, name).Find(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+" "+installed.Version)
	}
	described, err := node.Describe(t.Context(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", "), described.Kind()
}

// writePage writes docs/validation.md.
func writePage(t *testing.T, path string, all []record, part string) {
	t.Helper()
	runtimes := make(map[string]bool)
	for _, r := range all {
		runtimes[r.Runtime] = true
	}
	versions, machine := measuredOn(t, runtimes)
	made := fmt.Sprintf("on %s from %s, with limits of version %d,\nall judged by the program of commit %s,\n%s,\non %s",
		time.Now().UTC().Format(time.DateOnly), part,
		validators.LimitsVersion, programID(t), versions, machine)
	if err := os.WriteFile(path, []byte(page(all, made, firstSeed(t))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The sample of every run: engines that are right pass, and those with a fault do not, in each way that a fault can
// be found. All share four models.
func TestVerifierKnowsRightFromWrong(t *testing.T) { //nolint:tparallel // the group must end before its results are counted
	t.Parallel()
	folder := t.TempDir()
	models := make(map[string]about)
	for _, family := range []string{"classifier", "regressor", "encoder", rareFamily} {
		models[family] = model(t, folder, family, 1)
	}
	var tasks []task
	for family, quantized := range map[string]string{"classifier": "int8-static", "regressor": "int4-weights", "encoder": "int8-static"} {
		tasks = append(tasks, task{family, 1, "", ort.Name, []string{"fp32", "fp16", "int8-dynamic", quantized}})
	}
	tasks = append(tasks, task{rareFamily, 1, "", ort.Name, []string{"fp32"}})
	for _, m := range []struct{ family, fault, variant string }{
		{"classifier", "training-norm", "fp32"}, {"classifier", "class-off-by-one", "int8-dynamic"}, {"classifier", "nan-on-one-case", "fp32"},
		{"classifier", saturating, "int8-static"}, {"classifier", "class-drop", "fp16"}, {"regressor", "channel-1.05", "fp32"},
		{"regressor", "stale-row", "fp16"}, {"regressor", "normalisation-scale", "int8-dynamic"}, {"encoder", "outputs-swapped", "fp32"},
		{"encoder", "vocabulary-truncated", "fp16"}, {"encoder", "batch-dependence", "fp32"}, {"encoder", "jitter-1", "fp32"},
		{"regressor", oneLoad, "int8-dynamic"}, {"regressor", "dead-segment", "int8-dynamic"},
	} {
		tasks = append(tasks, task{m.family, 1, m.fault, ort.Name, []string{m.variant}})
	}
	var lock sync.Mutex
	var all []record
	t.Run("engines", func(t *testing.T) {
		for _, task := range tasks {
			t.Run(task.String(), func(t *testing.T) {
				t.Parallel()
				made := runTask(t, models[task.family], task)
				lock.Lock()
				defer lock.Unlock()
				all = append(all, made...)
			})
		}
	})
	v := sortOut(all)
	for _, r := range v.notBuilt {
		t.Errorf("%s %s: %s, want a verdict", r.Task, r.Variant, r.Error)
	}
	if len(v.honest) != 13 || len(v.counted) != 14 {
		t.Errorf("%d honest engines and %d with a fault that shows, want 13 and 14", len(v.honest), len(v.counted))
	}
	for _, r := range v.falseAlarms {
		t.Errorf("%s %s: verdict %s, %s; want a pass of an engine that is right", r.Task, r.Variant, r.Verdict, r.First)
	}
	for _, r := range v.counted {
		if r.passed() || len(r.Reasons) == 0 {
			t.Errorf("%s %s: verdict %s for %q, want a failure with a reason", r.Task, r.Variant, r.Verdict, r.Reasons)
		}
	}
}
