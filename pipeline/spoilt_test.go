//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tune"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// spoilt spoils what one call of any driver of a world leaves, after the driver listed its files: as
// a program does that empties temporary folders, or a disk that fails.
type spoilt struct {
	mu        sync.Mutex
	at, calls int
	onwards   bool                                                       // all calls after it too: engines that fail together are tried alone
	only      func(driver string, job toolchain.Job, outDir string) bool // nil: all calls count
	how       func(outDir string, o *toolchain.Outcome) error
	last      string // driver and verb of the call that was spoilt
}

// spoiltDriver is a driver of the world, as the field of [run.Toolchain] is called.
type spoiltDriver struct {
	toolchain.Driver
	name string
	*spoilt
}

func (d spoiltDriver) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	outcome, err := d.Driver.Do(ctx, job, outDir)
	if err != nil || d.only != nil && !d.only(d.name, job, outDir) {
		return outcome, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; d.at == 0 || d.calls < d.at || d.calls > d.at && !d.onwards {
		return outcome, nil
	}
	d.last = d.name + " " + string(job.Verb)
	return outcome, d.how(outDir, &outcome)
}

// spoil puts s around the drivers of every toolchain.
func (w *world) spoil(s *spoilt) {
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		for name, driver := range map[string]*toolchain.Driver{
			"engines": &tools.Engines, "timing": &tools.Timing, "quantizer": &tools.Quantizer, "importer": &tools.Importer, "evaluator": &tools.Evaluator,
		} {
			if *driver != nil {
				*driver = spoiltDriver{*driver, name, s}
			}
		}
		return tools, err
	}
}

// eachFile does something with all files of an outcome.
func eachFile(do func(path string) error) func(string, *toolchain.Outcome) error {
	return func(_ string, o *toolchain.Outcome) error {
		var all []error
		for _, f := range o.Files {
			all = append(all, do(f.Path))
		}
		return errors.Join(all...)
	}
}

// emptied removes everything else of the temporary folder that a driver works in.
func emptied(outDir string, _ *toolchain.Outcome) error {
	for at := outDir; !strings.HasPrefix(filepath.Base(at), "mlpromote-"); at = filepath.Dir(at) {
		beside, err := filepath.Glob(filepath.Join(filepath.Dir(at), "*"))
		if err != nil {
			return err
		}
		for _, other := range beside {
			if other == at {
				continue
			}
			if err := os.RemoveAll(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// retold is a quantizer whose models have another text each time.
type retold struct {
	quantizer
	times *int
}

func (r retold) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	outcome, err := r.quantizer.Do(ctx, job, outDir)
	if err != nil {
		return outcome, err
	}
	*r.times++
	if err := os.WriteFile(filepath.Join(outDir, "model.onnx"), scaling(1.5, 1, fmt.Sprint("quantized at ", *r.times)), 0o600); err != nil {
		return outcome, err
	}
	outcome.Files, err = toolchain.Collect(outDir)
	return outcome, err
}

// rich gives the world all that a build can do: labels, calibration, an evaluator, a quantizer that
// never leaves the same bytes, and an imported source or not.
func (w *world) rich(t *testing.T, imported bool) string {
	t.Helper()
	w.priced(t)
	w.calibration(t, []float32{40, 50})
	w.put(t, map[string]string{"model.tflite": tfliteModel, "words.txt": "a"})
	w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1.5, ranges: `{"x": [0, 50]}`}, nil }
	w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
	open, times, jobs := w.p.Toolchain, 0, []toolchain.Job{}
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		tools.Importer, tools.Framework = importer{w, 1.5, &jobs, tools.Engines}, "lite"
		tools.Quantizer = retold{quantizer{w}, &times}
		tools.Evaluator = evaluator{weight: 1.5, cases: -1, t: t}
		return tools, err
	}
	text := strings.Replace(pricedSpec("{metric: mae, max: 5, drop: {max: 90%}}"), "dynamic", "static", 1)
	if imported {
		text = strings.Replace(text, "model.onnx", "{path: model.tflite, format: tflite}", 1)
	}
	text = strings.Replace(text, "limits: {", "limits: {outputs: {y: {close: {min: 80%}}}, ", 1)
	return text + "calibration: calibration/\nassets: [words.txt]\n"
}

// Whatever a step of a build leaves broken, the build ends with an error, warns, or gives an engine a
// worse class of reproducibility: no file that cannot be read is taken for one that says nothing.
func TestNoFaultOfAStepPasses(t *testing.T) {
	t.Parallel()
	// Of a step that is done again, digests alone are looked at.
	first := func(_ string, _ toolchain.Job, outDir string) bool { return !strings.Contains(outDir, "again-") }
	read := func(driver string, job toolchain.Job, outDir string) bool {
		return first(driver, job, outDir) && job.Verb == toolchain.VerbRun
	}
	kept := func(driver string, job toolchain.Job, outDir string) bool {
		return first(driver, job, outDir) && driver != "timing" // what a run leaves that shows whether an engine loads is not kept
	}
	for kind, c := range map[string]struct {
		least int // calls
		only  func(driver string, job toolchain.Job, outDir string) bool
		how   func(outDir string, o *toolchain.Outcome) error
	}{
		"it fails":           {8, nil, func(string, *toolchain.Outcome) error { return errInjected }},
		"its files are gone": {4, first, eachFile(os.Remove)},
		"its files are cut":  {4, first, eachFile(func(path string) error { return os.Truncate(path, 9) })},
		"it lists no file":   {4, kept, func(_ string, o *toolchain.Outcome) error { o.Files = nil; return nil }},
		"its result is text": {2, read, func(_ string, o *toolchain.Outcome) error { o.Result = json.RawMessage("text"); return nil }},
	} {
		for source, imported := range map[string]bool{"an imported model": true, "a model": false} {
			t.Run(source+", "+kind, func(t *testing.T) {
				t.Parallel()
				var sound build.Result
				for at := 0; ; at++ {
					w := setup(t, 1.5)
					text := w.rich(t, imported)
					s := &spoilt{at: at, only: c.only, how: c.how}
					w.spoil(s)
					built, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{CheckReproducible: true})
					switch {
					case at == 0 && (err != nil || len(w.warnings) > 0 || s.calls < c.least):
						t.Fatalf("nothing was spoilt: error %v, warnings %q, %d calls; want none, and at least %d calls", err, w.warnings, s.calls, c.least)
					case at == 0:
						sound = built
						// The worst step decides: what is quantized has other bytes each time, and computes the same.
						want := map[string]evidence.Reproducibility{"linux-amd64-v1/fp32": evidence.ReproducibleBytes,
							"linux-amd64-v1/int8": evidence.ReproducibleSemantic}
						if !maps.Equal(built.Reproducible, want) {
							t.Errorf("reproducible by %v, want %v", built.Reproducible, want)
						}
					case at > s.calls:
						return
					case err == nil && len(w.warnings) == 0 && maps.Equal(sound.Reproducible, built.Reproducible):
						t.Errorf("call %d (%s) was spoilt, and no error, warning or class says so", at, s.last)
					}
				}
			})
		}
	}
}

// Whatever a run of a verification leaves broken, the engine gets no pass, or the verification ends
// with an error.
func TestNoFaultOfARunPasses(t *testing.T) {
	t.Parallel()
	run := func(_ string, job toolchain.Job, _ string) bool { return job.Verb == toolchain.VerbRun }
	compared := func(_ string, job toolchain.Job, _ string) bool { return compares(job) }
	labels := strings.Replace(pricedSpec("{metric: mae, max: 5, drop: {max: 90%}}"),
		"fp32, ", "{name: fp32, load: {options: {graph_optimization_level: basic}}}, ", 1)
	for name, prepare := range map[string]func(w *world) string{
		"with labels and a load profile": func(w *world) string { w.priced(t); return labels },
		"in chunks": func(w *world) string {
			w.priced(t)
			w.p.ChunkFrom = 1
			return labels
		},
	} {
		for kind, c := range map[string]struct {
			only func(driver string, job toolchain.Job, outDir string) bool
			how  func(outDir string, o *toolchain.Outcome) error
		}{
			"its files are gone":    {compared, eachFile(os.Remove)},
			"its files are cut":     {compared, eachFile(func(path string) error { return os.Truncate(path, 9) })},
			"it empties the folder": {run, emptied},
			"its result is text":    {run, func(_ string, o *toolchain.Outcome) error { o.Result = json.RawMessage("text"); return nil }},
		} {
			if name == "in chunks" && kind != "its files are gone" && kind != "it empties the folder" {
				continue // as without chunks
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				for at := 0; ; at++ {
					w := setup(t, 1.5)
					text := prepare(w)
					built := w.built(t, text, build.Options{})
					s := &spoilt{at: at, onwards: true, only: c.only, how: c.how}
					w.spoil(s)
					verified, err := verify.Verify(t.Context(), w.p, built.Ref)
					noticed := err != nil || len(verified.Engines) != 2
					for _, e := range verified.Engines {
						noticed = noticed || e.Parity.Verdict != evidence.VerdictPass || len(e.Parity.Reasons)+len(e.Performance.Reasons) > 0
					}
					switch {
					case at == 0 && (noticed || s.calls < 4):
						t.Fatalf("nothing was spoilt: error %v, engines %+v, %d calls; want two that pass, and at least 4 calls", err, verified.Engines, s.calls)
					case at > s.calls:
						return
					case at > 0 && !noticed:
						t.Errorf("call %d (%s) was spoilt, and no error, verdict or reason says so", at, s.last)
					}
				}
			})
		}
	}
}

// Whatever a step leaves broken while variants are tried, the command ends with an error, or the variant
// gets no pass.
func TestNoFaultOfATrialPasses(t *testing.T) {
	t.Parallel()
	all := func(string, toolchain.Job, string) bool { return true }
	makes := func(_ string, job toolchain.Job, _ string) bool { return job.Verb != toolchain.VerbRun }
	read := func(_ string, job toolchain.Job, _ string) bool {
		return job.Verb != toolchain.VerbRun || compares(job)
	}
	for kind, c := range map[string]struct {
		only func(driver string, job toolchain.Job, outDir string) bool
		how  func(outDir string, o *toolchain.Outcome) error
	}{
		"it fails":              {all, func(string, *toolchain.Outcome) error { return errInjected }},
		"its files are gone":    {read, eachFile(os.Remove)},
		"it lists no file":      {makes, func(_ string, o *toolchain.Outcome) error { o.Files = nil; return nil }},
		"it empties the folder": {read, emptied},
	} {
		for name, do := range map[string]func(w *world, s *spoilt) (noticed bool, err error){
			"tune": func(w *world, s *spoilt) (noticed bool, err error) {
				w.spoil(s)
				result, err := w.tune(t, tuned, 0)
				noticed = len(result.Trials) != 2 // what could not be made is skipped
				for _, trial := range result.Trials {
					noticed = noticed || trial.Verdict != evidence.VerdictPass
				}
				return noticed, err
			},
			"suggest": func(w *world, s *spoilt) (noticed bool, err error) {
				w.put(t, map[string]string{"more/.keep": ""})
				writeCases(t, filepath.Join(w.dir, "more", "a.safetensors"), []float32{4, -4, 5, 0.5})
				text := w.spec(t, digits)
				w.spoil(s)
				_, err = tune.SuggestLimits(t.Context(), w.p, text, "more")
				return false, err
			},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				for at := 0; ; at++ {
					s := &spoilt{at: at, onwards: true, only: c.only, how: c.how}
					noticed, err := do(setup(t, 1.5), s)
					switch {
					case at == 0 && (err != nil || noticed || s.calls < 3):
						t.Fatalf("nothing was spoilt: error %v, a trial without a pass: %t, %d calls; want a success of at least 3 calls", err, noticed, s.calls)
					case at > s.calls:
						return
					case at > 0 && err == nil && !noticed:
						t.Errorf("call %d (%s) was spoilt, and no error or verdict says so", at, s.last)
					}
				}
			})
		}
	}
}
