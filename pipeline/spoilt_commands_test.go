//go:build cgo

package pipeline_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// pricedCalibration writes calibration data of two cases with what they cost: 1.5 * x and one more.
func (w *world) pricedCalibration(t *testing.T) {
	t.Helper()
	x, err := tensor.New([]float32{40, 50}, 2, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	price, err := tensor.New([]float32{61, 76}, 2, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(w.dir, "calibration")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(folder, "x.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, map[string]tensor.Tensor{"x": x, "price": price}, nil); err != nil {
		t.Fatal(err)
	}
}

// pricedCompression is a spec with labels and a variant that is pruned so that it multiplies by 1.4.
func (w *world) pricedCompression(t *testing.T) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), scalingBy("MatMul", 1.5, 1, "made by hand", floats), 0o600); err != nil {
		t.Fatal(err)
	}
	w.priced(t)
	w.pricedCalibration(t)
	w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1.4, result: `{}`}, nil }
	text := strings.Replace(compressed, "VARIANT", "compress: [{method: prune, pattern: '2:4'}]", 1)
	text = strings.Replace(text, "cases: cases/", "cases: {path: cases/, labels: price}", 1)
	return strings.Replace(text, "limits: {", "limits: {accuracy: {metric: mae, max: 100, drop: {max: 10000%}}, ", 1)
}

// What a step of compression costs is measured by the metric too, where the calibration data has labels.
func TestCompressionCostsAccuracy(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built := w.built(t, w.pricedCompression(t), build.Options{})
	cost := built.Compression["linux-amd64-v1/small"]
	if cost == nil || cost.Labels != "price" || len(cost.Steps) != 1 || cost.Steps[0].Accuracy == nil {
		t.Fatalf("compression %+v, want one step with an accuracy on price", cost)
	}
	// The labels are 1.5 * x + 1 of x = 40 and 50: the model is off by 1, and 1.4 * x by 5 and 6.
	got := cost.Steps[0].Accuracy
	if got.Metric != "mae" || math.Abs(float64(got.Reference)-1) > 1e-5 || math.Abs(float64(got.Engine)-5.5) > 1e-5 {
		t.Errorf("accuracy %+v, want mae 5.5 beside 1 of the model", got)
	}
	w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1.4, result: `{}`}, nil }
	plain := strings.Replace(w.pricedCompression(t), "1.0.0", "1.1.0", 1)
	writeCases(t, filepath.Join(w.dir, "calibration", "x.safetensors"), []float32{40, 50})
	without := w.built(t, plain, build.Options{}).Compression["linux-amd64-v1/small"]
	if without == nil || without.Labels != "" || without.Steps[0].Accuracy != nil {
		t.Errorf("without labels: %+v, want no accuracy", without)
	}
}

// Whatever a call leaves broken while a step of compression is measured, an engine is bisected, a case replayed or a profile taken,
// the command ends with an error or says something else than of sound files: it does not say the same.
func TestNoFaultOfACommandPasses(t *testing.T) {
	t.Parallel()
	const label = "linux-amd64-v1/small"
	type found struct {
		says any
		err  error
	}
	commands := map[string]func(t *testing.T, s *spoilt) found{
		"compress": func(t *testing.T, s *spoilt) found {
			w := setup(t, 1.5)
			text := w.spec(t, w.pricedCompression(t))
			w.spoil(s)
			built, err := build.Build(t.Context(), w.p, text, build.Options{})
			return found{[]any{built.Compression[label], w.warnings}, err}
		},
		"bisect": func(t *testing.T, s *spoilt) found {
			through := newSeeThrough()
			through.off["h2"], through.lacks = 1.2, []string{"h2"}
			w, ref := seenThrough(t, through, onlyFP32)
			w.spoil(s)
			got, err := diagnose.Bisect(t.Context(), w.p, ref, diagnose.BisectOptions{})
			return found{got, err}
		},
		"replay": func(t *testing.T, s *spoilt) found {
			w := setup(t, 1.25)
			built := w.built(t, digits, build.Options{})
			w.spoil(s)
			got, err := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{Engine: "int8"})
			return found{got, err}
		},
	}
	for kind, how := range map[string]func(outDir string, o *toolchain.Outcome) error{
		"it fails":              func(string, *toolchain.Outcome) error { return errInjected },
		"its files are gone":    eachFile(os.Remove),
		"its files are cut":     eachFile(func(path string) error { return os.Truncate(path, 9) }),
		"it empties the folder": emptied,
		"its result is text":    func(_ string, o *toolchain.Outcome) error { o.Result = json.RawMessage("text"); return nil },
	} {
		for name, do := range commands {
			// Where a build loads an engine to see whether that works, and where runs are timed, no files are read.
			only := func(driver string, job toolchain.Job, _ string) bool {
				read := compares(job) && (driver != "timing" || name != "compress")
				switch kind {
				case "it fails":
					return true
				case "its result is text":
					return job.Verb == toolchain.VerbCompress
				case "it empties the folder":
					return read
				}
				return read || job.Verb != toolchain.VerbRun
			}
			if kind == "its result is text" && name != "compress" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				var sound found
				for at := 0; ; at++ {
					s := &spoilt{at: at, onwards: true, only: only, how: how}
					got := do(t, s)
					switch {
					case at == 0 && (got.err != nil || s.calls == 0):
						t.Fatalf("nothing was spoilt: error %v, %d calls; want a success, and at least one call", got.err, s.calls)
					case at == 0:
						sound = got
					case at > s.calls:
						return
					case got.err == nil && (name == "replay" || reflect.DeepEqual(got.says, sound.says)):
						t.Errorf("call %d (%s) was spoilt, and the command says what it said of sound files", at, s.last)
					}
				}
			})
		}
	}
}

// Whichever call of the registry fails while an engine is bisected or a variant is compressed, the command ends with its error.
func TestEveryFaultOfACommandIsAnError(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(t *testing.T, f *faults) error{
		"bisect": func(t *testing.T, f *faults) error {
			through := newSeeThrough()
			through.off["h2"], through.lacks = 1.2, []string{"h2"}
			w, ref := seenThrough(t, through, onlyFP32)
			w.inject(f)
			_, err := diagnose.Bisect(t.Context(), w.p, ref, diagnose.BisectOptions{})
			return err
		},
		"compress": func(t *testing.T, f *faults) error {
			w := setup(t, 1.5)
			text := w.spec(t, w.pricedCompression(t))
			w.inject(f)
			_, err := build.Build(t.Context(), w.p, text, build.Options{})
			return err
		},
		"a student": func(t *testing.T, f *faults) error {
			w := compressible(t)
			write(t, w, "student.onnx", scaling(1.6, 1, "another model"))
			text := w.spec(t, strings.Replace(compressed, "VARIANT", "model: student.onnx", 1))
			w.inject(f)
			_, err := build.Build(t.Context(), w.p, text, build.Options{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				f := &faults{at: at}
				err := do(t, f)
				switch {
				case at == 0 && (err != nil || f.calls < 5):
					t.Fatalf("%d calls, error %v; want at least 5 and none", f.calls, err)
				case at > f.calls:
					return
				case at > 0 && !errors.Is(err, errInjected):
					t.Errorf("call %d, %s, failed: got error %v, want that one", at, f.name, err)
				}
			}
		})
	}
}
