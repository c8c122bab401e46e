//go:build cgo

package pipeline_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
)

// failing is a world with an int8 engine of static quantization that needs the node a in full precision.
func failing(t *testing.T) (*world, build.Result, *[]string) {
	t.Helper()
	w, roles := setup(t, 0), new([]string)
	w.p.Sensitivity = time.Hour
	w.calibration(t, []float32{4, 5})
	w.quantize = func(job toolchain.Job) (quantized, error) {
		*roles = nil
		for _, in := range job.Inputs {
			*roles = append(*roles, in.Role)
		}
		made := quantized{weight: -1.5, result: nodes(3), ranges: `{"x": [0, 5]}`}
		if excluded, _ := job.Options["exclude_nodes"].([]string); slices.Contains(excluded, "a") {
			made.weight = 1.5
		}
		return made, nil
	}
	built := w.built(t, strings.Replace(digits, "dynamic", "static", 1)+"calibration: calibration/\n", build.Options{})
	return w, built, roles
}

// What one call did not tell is no answer: if a call fails while the costly nodes of an engine are
// looked for, there is the whole answer or none. The engine fails its limits all the same.
func TestSensitivityIsWholeOrNone(t *testing.T) {
	t.Parallel()
	for name, inject := range map[string]func(w *world, at int) (calls func() int){
		"the runtime fails": func(w *world, at int) func() int {
			s := &spoil{at: at, mu: new(sync.Mutex), how: func(string) error { return errInjected }}
			w.run = s.run
			return func() int { return s.calls }
		},
		"the registry fails": func(w *world, at int) func() int {
			f := &faults{at: at}
			w.inject(f)
			return func() int { return f.calls }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			none, whole := 0, 0
			for at := 1; ; at++ {
				w, built, roles := failing(t)
				calls := inject(w, at)
				verified, err := verify.Verify(t.Context(), w.p, built.Ref)
				if calls() < at {
					if !slices.Contains(*roles, toolchain.RoleCalibration) {
						t.Errorf("the quantizer got %q, want the calibration of the build", *roles)
					}
					break
				}
				if errors.Is(err, errInjected) {
					continue
				}
				if registry.CodeOf(err) != registry.CodeLimit {
					t.Errorf("call %d failed: error %v (%s), want CodeLimit", at, err, registry.CodeOf(err))
					continue
				}
				found := verified.Engines[1].Sensitivity
				switch {
				case found == nil:
					none++
				case slices.Equal(found.Exclude, []string{"a"}) && !found.Unfinished:
					whole++
				default:
					t.Errorf("call %d failed: found %+v, want to exclude a, or nothing", at, found)
				}
			}
			if none+whole == 0 {
				t.Error("no call failed while nodes were looked for, want some")
			}
		})
	}
}
