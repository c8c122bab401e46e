package tensorfile_test

import (
	"bytes"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// fuzzLimits keep what an accepted input may allocate small.
var fuzzLimits = tensorfile.Limits{MaxHeaderBytes: 1 << 16, MaxTensors: 64, MaxTensorBytes: 1 << 16, MaxTotalBytes: 1 << 18}

func addFiles(f *testing.F, names ...string) {
	for _, name := range names {
		f.Add(tensortest.Must(os.ReadFile("testdata/" + name)))
	}
}

// FuzzSafetensors: what is accepted is valid, and survives being written again.
func FuzzSafetensors(f *testing.F) {
	addFiles(f, "dtypes.safetensors")
	f.Add(safetensors(`{}`))
	f.Add(safetensors(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 1, 2))
	f.Add(safetensors(`{"x":{"dtype":"U8","shape":[0,9],"data_offsets":[0,0]},"\u0079":{"dtype":"U8","shape":[],"data_offsets":[0,1]}} `, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := open(data, fuzzLimits)
		if err != nil {
			return
		}
		all := map[string]tensor.Tensor{}
		for _, name := range file.Names() {
			x, err := file.Tensor(name)
			if err != nil {
				return // over a limit
			}
			if err := x.Validate(); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			all[name] = x
		}
		var buf bytes.Buffer
		if err := tensorfile.Write(&buf, all, file.Metadata()); err != nil {
			t.Fatal(err)
		}
		again, err := open(buf.Bytes(), tensorfile.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range all {
			if got, err := again.Tensor(name); err != nil || !tensortest.Equal(got, want) {
				t.Fatalf("%q: %v, %v, want %v", name, got, err, want)
			}
		}
	})
}

// FuzzNpy: what is accepted is valid.
func FuzzNpy(f *testing.F) {
	addFiles(f, "c.npy", "v2.npy", "v3.npy", "fortran.npy", "big_endian.npy", "object.npy", "bfloat16.npy", "scalar.npy")
	f.Add(u1(1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := tensorfile.ReadNpy(bytes.NewReader(data), fuzzLimits)
		if err != nil {
			return
		}
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		if x.DType.Class() == tensor.ClassFloat || x.DType.Class() == tensor.ClassInteger {
			same := tensor.NewComparison(tensor.Options{})
			if err := same.Add(0, x, x); err != nil {
				t.Fatal(err)
			}
			if got := same.Result(); got.Failed != 0 {
				t.Fatalf("differs from itself: %+v", got)
			}
		}
	})
}

// FuzzNpz: what is accepted is valid and within the limits.
func FuzzNpz(f *testing.F) {
	addFiles(f, "stored.npz", "deflate.npz")
	f.Add(npz(member{name: "a.npy", content: u1(1, 2)}))
	f.Add(npz(member{name: "data.pkl"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := readNpz(data, fuzzLimits)
		if err != nil {
			return
		}
		var total int64
		for name, x := range all {
			if err := x.Validate(); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			total += int64(len(x.Data))
		}
		if total > fuzzLimits.MaxTotalBytes || len(all) > fuzzLimits.MaxTensors {
			t.Fatalf("%d arrays of %d bytes", len(all), total)
		}
	})
}
