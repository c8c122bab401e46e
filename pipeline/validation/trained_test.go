//go:build cgo

package validation_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
)

// tuningSeeds are for whoever changes rules or limits. judgingSeeds are for measuring them afterwards: nobody looks at a verdict on these
// models before, and nothing changes because of one.
var (
	tuningSeeds  = []int{1, 2, 3}
	judgingSeeds = []int{101, 102, 103}
)

// TestTrained is the second long form of `make validation`: trained models of 13 kinds, with honest engines and with faults. MLPROMOTE_TRAINED
// is a folder for models and results; a run continues from them. MLPROMOTE_TRAINED_SEEDS is "tuning", "judging" or a seed for judging, MLPROMOTE_TRAINED_KINDS
// an expression that kinds match. The summary goes to MLPROMOTE_TRAINED_PAGE, or to a file in the folder.
func TestTrained(t *testing.T) {
	folder := os.Getenv("MLPROMOTE_TRAINED")
	if folder == "" {
		t.Skip("the long form runs by make validation")
	}
	seeds, name := judgingSeeds, "judging"
	switch named := os.Getenv("MLPROMOTE_TRAINED_SEEDS"); named {
	case "", "judging":
	case "tuning":
		seeds, name = tuningSeeds, named
	default:
		seed, err := strconv.Atoi(named)
		if err != nil || !slices.Contains(judgingSeeds, seed) {
			t.Fatalf("MLPROMOTE_TRAINED_SEEDS is %q, want tuning, judging or one of %v", named, judgingSeeds)
		}
		seeds = []int{seed}
	}
	kinds := matching(t, os.Getenv("MLPROMOTE_TRAINED_KINDS"))
	until := deadline(t)
	var all []engineRecord
	done := 0
	for _, seed := range seeds {
		for part := 1; part <= trainedParts; part++ { // a run that is stopped has something of all kinds
			for _, kind := range kinds {
				found, finished := runKind(t, folder, name, kind, seed, part, until)
				if part < trainedParts {
					continue
				}
				all = append(all, found...)
				if finished {
					done++
				}
			}
		}
	}
	want := len(seeds) * len(kinds)
	page := trainedPage(all, trainedHead(t, all, name, seeds, fmt.Sprintf("%d engines; %d of %d models are complete", len(all), done, want)))
	path := cmp.Or(os.Getenv("MLPROMOTE_TRAINED_PAGE"), filepath.Join(folder, name+".md"))
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// trainedParts is the number of parts in which the tasks of a model run.
const trainedParts = 4

// runKind runs the engines of a model that no earlier run has judged, the honest ones first, up to a part of them. finished is false if the
// time ended before.
func runKind(t *testing.T, folder, name, kind string, seed, part int, until time.Time) (records []engineRecord, finished bool) {
	t.Helper()
	done, err := openResults[engineRecord](filepath.Join(folder, fmt.Sprintf("%s-%s-%d.jsonl", name, kind, seed)), programID(t))
	if err != nil {
		t.Fatal(err)
	}
	late := func() bool { return !until.IsZero() && time.Now().After(until) }
	models := filepath.Join(folder, "models")
	if _, err := os.Stat(aboutFile(models, kind, seed)); err != nil && late() {
		return done.records, false
	}
	m := trainedModel(t, models, kind, seed)
	tasks := trainedTasks(t, m)
	for i, task := range tasks[:(len(tasks)*part+trainedParts-1)/trainedParts] {
		if done.done[task.String()] {
			continue
		}
		if late() {
			t.Logf("stopped %s-%d after %d of %d: run it again to continue", kind, seed, i, len(tasks))
			return done.records, false
		}
		began := time.Now()
		made := runTrained(t, m, task)
		for i := range made {
			made[i].judgeHarm(append(slices.Clone(done.records), made...))
			made[i].Program = done.program
		}
		if err := done.add(made); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s, %v\n", i+1, len(tasks), task, time.Since(began).Round(time.Millisecond))
	}
	return done.records, true
}

// matching returns the kinds that match an expression; all for an empty one.
func matching(t *testing.T, expression string) []string {
	t.Helper()
	pattern, err := regexp.Compile("^(" + expression + ")$")
	if err != nil {
		t.Fatal(err)
	}
	if expression == "" {
		return trainedKinds
	}
	return slices.DeleteFunc(slices.Clone(trainedKinds), func(kind string) bool { return !pattern.MatchString(kind) })
}

// trainedTasks lists the tasks of a model: honest engines first, because faulty ones in int8 are compared with them.
func trainedTasks(t *testing.T, m trained) []trainedTask {
	t.Helper()
	task := func(fault, runtime string, variants ...string) trainedTask {
		return trainedTask{m.kind, m.seed, fault, runtime, variants}
	}
	if slices.Contains(treeKinds, m.kind) {
		all := []trainedTask{task("", ort.Name, "fp32")}
		for _, fault := range m.Faults {
			all = append(all, task(fault, ort.Name, "fp32"))
		}
		return all
	}
	all := []trainedTask{task("", ort.Name, "fp32", "fp16", "int8-static", "int8-channels", "int8-dynamic")}
	if slices.Contains(openvinoKinds, m.kind) && isInstalled(t, "openvino") {
		all = append(all, task("", "openvino", "fp32", "int8-static"))
	}
	for i, fault := range m.Faults {
		variants := []string{"fp32", "int8-static", "int8-dynamic"}
		if (i+m.seed)%4 == 2 {
			variants = append(variants, "fp16")
		}
		all = append(all, task(fault, ort.Name, variants...))
	}
	all = append(all, task(narrowCalibration, ort.Name, "int8-static"))
	if slices.Contains(openvinoKinds, m.kind) && isInstalled(t, "openvino") {
		all = append(all, task("older-checkpoint", "openvino", "fp32", "int8-static"))
	}
	return all
}

// The sample of every run: two models that are trained without PyTorch. Their honest engines pass, and engines with faults that harm their
// tasks do not.
func TestVerifierOnTrainedModels(t *testing.T) { //nolint:tparallel // the group must end before its results are counted
	t.Parallel()
	folder := t.TempDir()
	var lock sync.Mutex
	var all []engineRecord
	t.Run("models", func(t *testing.T) {
		for kind, tasks := range map[string][]trainedTask{
			"price": {{variants: []string{"fp32", "int8-dynamic"}}, {fault: "few-cases-constant", variants: []string{"int8-dynamic"}},
				{fault: "older-checkpoint", variants: []string{"fp32"}}},
			"trees": {{variants: []string{"fp32"}}, {fault: "class-trees-missing", variants: []string{"fp32"}},
				{fault: "thresholds-rounded", variants: []string{"fp32"}}},
		} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				m := trainedModel(t, folder, kind, tuningSeeds[0])
				var records []engineRecord
				for _, task := range tasks {
					task.kind, task.seed, task.runtime = kind, m.seed, ort.Name
					made := runTrained(t, m, task)
					for i := range made {
						made[i].judgeHarm(append(slices.Clone(records), made...))
					}
					records = append(records, made...)
				}
				lock.Lock()
				defer lock.Unlock()
				all = append(all, records...)
			})
		}
	})
	honest, faulty := 0, 0
	for _, r := range all {
		name := r.Task + " " + r.Variant
		switch {
		case r.Error != "":
			t.Errorf("%s: %s, want a verdict", name, r.Error)
		case r.Fault == "":
			honest++
			if !r.passed() || r.Harm != "" {
				t.Errorf("%s: verdict %s for %v, harm %q; want a pass of an honest engine without harm", name, r.Verdict, r.Reasons, r.Harm)
			}
		default:
			faulty++
			if r.passed() || len(r.rules()) == 0 || r.Harm == "" {
				t.Errorf("%s: verdict %s by rules %q, harm %q; want a failure by a rule, and harm", name, r.Verdict, r.rules(), r.Harm)
			}
		}
	}
	if honest != 3 || faulty != 4 {
		t.Errorf("%d honest and %d faulty engines, want 3 and 4", honest, faulty)
	}
}
