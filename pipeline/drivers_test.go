//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// spoil has one of the calls of the driver leave something broken. Where only is set, other calls are not counted.
type spoil struct {
	at, calls int  // the call that is spoilt; 0: none
	onwards   bool // all calls after it too: engines that fail together are tried alone
	only      func(toolchain.Job) bool
	how       func(outDir string) error
	last      toolchain.Verb // of the call that was spoilt
	mu        *sync.Mutex    // of calls and last: engines are made at the same time
}

func (s *spoil) run(job toolchain.Job, outDir string) error {
	if s.only != nil && !s.only(job) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.calls < s.at || s.calls > s.at && !s.onwards {
		return nil
	}
	s.last = job.Verb
	return s.how(outDir)
}

// eachTensors does something with every file of tensors below a folder.
func eachTensors(do func(path string) error) func(outDir string) error {
	return func(outDir string) error {
		return filepath.WalkDir(outDir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".safetensors") {
				return err
			}
			return do(path)
		})
	}
}

// compares reports whether the outputs of a job are read: those of runs that are timed are not.
func compares(job toolchain.Job) bool { return job.Verb == toolchain.VerbRun && job.Run.Rounds == 0 }

// Whatever a runtime leaves broken, at whichever call, a build and a verification notice it: they
// fail, they give the engine no pass, or they say what was not done.
func TestNoFaultOfARuntimePasses(t *testing.T) {
	t.Parallel()
	kinds := map[string]spoil{
		"it fails from then on": {onwards: true, how: func(string) error { return errInjected }},
		"outputs are cut":       {only: compares, how: eachTensors(func(path string) error { return os.Truncate(path, 9) })},
		"outputs are missing":   {only: compares, how: eachTensors(os.Remove)},
		"outputs are text":      {only: compares, how: eachTensors(func(path string) error { return os.WriteFile(path, []byte("hello"), 0o600) })},
	}
	for kind, spoilt := range kinds {
		for name, do := range map[string]func(ctx context.Context, w *world, s *spoil) (noticed bool, err error){
			"build": func(ctx context.Context, w *world, s *spoil) (bool, error) {
				w.run = s.run
				_, err := build.Build(ctx, w.p, w.spec(t, digits), build.Options{})
				return false, err
			},
			"verify":                    verifySpoilt(t, false),
			"verify what replaces prod": verifySpoilt(t, true),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at++ {
					w, s := setup(t, 1.5), spoilt
					s.at, s.mu = at, new(sync.Mutex)
					noticed, err := do(t.Context(), w, &s)
					if s.calls < at {
						if err != nil || noticed {
							t.Errorf("nothing was spoilt: error %v, noticed %t; want a success", err, noticed)
						}
						if at < 3 {
							t.Errorf("%d calls were spoilt, want at least 2", at-1)
						}
						return
					}
					if err == nil && !noticed && len(w.warnings) == 0 {
						t.Errorf("call %d (%s) was spoilt, and no error, reason or warning says so", at, s.last)
					}
				}
			})
		}
	}
}

// verifySpoilt verifies a release with a spoilt runtime: the first one, or one that is to replace another in prod.
func verifySpoilt(t *testing.T, second bool) func(ctx context.Context, w *world, s *spoil) (bool, error) {
	t.Helper()
	return func(ctx context.Context, w *world, s *spoil) (bool, error) {
		built := w.built(t, digits, build.Options{})
		if second {
			if _, err := verify.Verify(ctx, w.p, built.Ref); err != nil {
				return false, err
			}
			if _, err := w.Promote(ctx, api.PromoteRequest{Model: registrytest.Model}); err != nil {
				return false, err
			}
			w.model(t, 1.5000001)
			built = w.built(t, strings.Replace(digits, "1.0.0", "1.1.0", 1), build.Options{})
		}
		w.warnings, w.run = nil, s.run
		verified, err := verify.Verify(ctx, w.p, built.Ref)
		noticed := len(verified.Engines) != 2
		for _, e := range verified.Engines {
			noticed = noticed || e.Parity.Verdict != evidence.VerdictPass || len(e.Parity.Reasons) > 0 || len(e.Performance.Reasons) > 0
		}
		return noticed, err
	}
}

// A verification that is interrupted, at whichever call, ends with that and gives no verdict. So
// does one that looks for what makes an engine fail.
func TestInterruptedVerification(t *testing.T) {
	t.Parallel()
	for name, weight := range map[string]float32{"of engines that pass": 1.5, "of an engine that fails": -1.5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at++ {
				w := setup(t, weight)
				w.p.Sensitivity = time.Hour
				w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: weight, result: nodes(3)}, nil }
				built := w.built(t, digits, build.Options{})
				before, err := w.History(t.Context(), history.HistoryQuery{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				s := spoil{at: at, mu: new(sync.Mutex), how: func(string) error { cancel(); return ctx.Err() }}
				w.run = s.run
				_, err = verify.Verify(ctx, w.p, built.Ref)
				cancel()
				if s.calls < at {
					if at < 3 {
						t.Errorf("%d calls were interrupted, want at least 2", at-1)
					}
					return
				}
				after, historyErr := w.History(t.Context(), history.HistoryQuery{})
				if historyErr != nil {
					t.Fatal(historyErr)
				}
				if !errors.Is(err, context.Canceled) && len(after) == len(before) {
					t.Errorf("call %d was interrupted: error %v, want that it was canceled", at, err)
				}
			}
		})
	}
}
