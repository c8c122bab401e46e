//go:build cgo

package ort_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// harnessTurns is how many turns BenchmarkHarness takes for a figure.
const harnessTurns = 10

// BenchmarkHarness times a run of all cases, from the first that is read to the last output that is
// written, against a bare loop: the same library and binding, options, cases and batch, with
// the cases in memory before it begins and the outputs left in memory. Loading is in neither.
// Both have one thread and take turns, in the order of a palindrome. The figures are medians of
// what the harness takes more in a turn: of time on the clock, and of time of processors, which
// other work on the machine changes less.
func BenchmarkHarness(b *testing.B) {
	record, err := toolchaintest.Installer(b, ort.Name).Find(ort.Name)
	if err != nil {
		b.Fatal(err)
	}
	rt.SetSharedLibraryPath(record.LibraryPath())
	if err := rt.InitializeEnvironment(rt.WithLogLevelError()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = rt.DestroyEnvironment() })
	made := b.TempDir()
	if out, err := exec.Command(filepath.Join(record.Dir, "venv", "bin", "python3"), "testdata/harness.py", made).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Run("digits", func(b *testing.B) {
		benchHarness(b, digits+"digits.onnx", repeated(b, digits+"cases/cases-00000.safetensors", 20))
	})
	b.Run("convolutions", func(b *testing.B) {
		benchHarness(b, filepath.Join(made, "convolutions.onnx"), repeated(b, filepath.Join(made, "cases.safetensors"), 5))
	})
}

func benchHarness(b *testing.B, model, cases string) {
	model, cases = absolute(b, model), absolute(b, cases)
	dir := b.TempDir()
	ours := func() spent {
		out := filepath.Join(dir, "out")
		loaded, err := ort.Load(driverproc.Request{
			Inputs: []driverproc.RequestInput{{Role: toolchain.RoleCases, Name: "cases.safetensors", Path: cases}},
			Run: &driverproc.RunRequest{OutputsDir: out, RunOptions: toolchain.RunOptions{
				Engines: []toolchain.RunEngine{{ID: "m", Path: model, Load: map[string]string{"intra_op_num_threads": "1"}}}}},
		})
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		began := clock(b)
		if _, err := loaded.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := clock(b).since(began)
		if err := errors.Join(loaded.Close(), os.RemoveAll(out)); err != nil {
			b.Fatal(err)
		}
		return took
	}
	var wall, cpu, bare []float64
	for b.Loop() {
		for range harnessTurns {
			a, x, y, c := ours(), bareLoop(b, model, cases), bareLoop(b, model, cases), ours()
			bare = append(bare, x.wall.Seconds(), y.wall.Seconds())
			wall = append(wall, 100*(float64(a.wall+c.wall)/float64(x.wall+y.wall)-1))
			cpu = append(cpu, 100*(float64(a.cpu+c.cpu)/float64(x.cpu+y.cpu)-1))
		}
	}
	for _, all := range [][]float64{wall, cpu} {
		slices.Sort(all)
	}
	b.ReportMetric(1000*slices.Min(bare), "bare-ms")
	b.ReportMetric(wall[len(wall)/2], "%-time-over-bare")
	b.ReportMetric(cpu[len(cpu)/2], "%-processor-over-bare")
}

// spent is time on the clock, and of processors for this process.
type spent struct{ wall, cpu time.Duration }

func clock(b *testing.B) spent {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return spent{time.Duration(time.Now().UnixNano()), time.Duration(used.Utime.Nano() + used.Stime.Nano())}
}

func (s spent) since(began spent) spent { return spent{s.wall - began.wall, s.cpu - began.cpu} }

// bareLoop runs all cases of a model with one input of float32, as a program would that knows it.
func bareLoop(b *testing.B, model, cases string) spent {
	b.Helper()
	all, err := tensorfile.ReadFile(cases, tensorfile.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	in, out, err := rt.GetInputOutputInfo(model)
	if err != nil {
		b.Fatal(err)
	}
	var x []float32
	for _, v := range all[in[0].Name].Float64s() {
		x = append(x, float32(v))
	}
	shape := append(rt.Shape{1}, all[in[0].Name].Shape[1:]...)
	size := int(shape.FlattenedSize())
	var outputs []string
	for _, o := range out {
		outputs = append(outputs, o.Name)
	}
	options, err := rt.NewSessionOptions()
	if err == nil {
		err = options.SetIntraOpNumThreads(1)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = options.Destroy() }()
	session, err := rt.NewDynamicAdvancedSession(model, []string{in[0].Name}, outputs, options)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = session.Destroy() }()
	var kept [][]float32
	runtime.GC()
	began := clock(b)
	for row := range slices.Chunk(x, size) {
		input, err := rt.NewTensor(shape, row)
		if err != nil {
			b.Fatal(err)
		}
		results := make([]rt.Value, len(outputs))
		if err := session.Run([]rt.Value{input}, results); err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			if values, ok := r.(*rt.Tensor[float32]); ok {
				kept = append(kept, slices.Clone(values.GetData()))
			}
			_ = r.Destroy()
		}
		_ = input.Destroy()
	}
	took := clock(b).since(began)
	if len(kept) < len(x)/size {
		b.Fatalf("%d outputs of %d cases", len(kept), len(x)/size)
	}
	return took
}

// repeated writes the inputs of a file of cases several times behind each other.
func repeated(b *testing.B, cases string, times int) string {
	b.Helper()
	x, err := tensorfile.ReadFile(cases, tensorfile.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	delete(x, "label")
	for name, t := range x {
		if x[name], err = tensor.Concat(slices.Repeat([]tensor.Tensor{t}, times)...); err != nil {
			b.Fatal(err)
		}
	}
	path := filepath.Join(b.TempDir(), "cases.safetensors")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(tensorfile.Write(f, x, nil), f.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

func absolute(b *testing.B, path string) string {
	b.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		b.Fatal(err)
	}
	return path
}
