package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// seedModels adds every model of the test files, what the tests build, and bytes of other formats.
func seedModels(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/*.*", "../testdata/*.*", runnable + "tokens.onnx", runnable + "segments.onnx"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no test files %s: %v", pattern, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(formattest.Small()))
	f.Add([]byte(formattest.Nested(3)))
	f.Add([]byte(formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("w.bin", "1", "2"))))))
	f.Add([]byte(formattest.Saved(formattest.Msg{}.Str(2, "MatMul"))))
	f.Add(formattest.Zipped(f, "a/data.pkl", "\x80\x02."))
}

// FuzzRead expects a whole model or an error with a code, in bounded
// memory; and that what is read as a model is not also recognised as nothing.
func FuzzRead(f *testing.F) {
	seedModels(f)
	lim := bound.Limits{MaxDepth: 8, MaxNodes: 1000, MaxTensors: 1000, MaxFields: 100_000, MaxMemory: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Read(bytes.NewReader(data), int64(len(data)), lim)
		if err != nil {
			if code := registry.CodeOf(err); m != nil || code != registry.CodeInvalid && code != registry.CodeUnsafe {
				t.Errorf("%v, code %q", err, code)
			}
			return
		}
		if len(m.Outputs) == 0 || len(m.Opsets) == 0 || m.IRVersion < 1 || m.InitializerBytes < 0 {
			t.Errorf("half a model: %+v", m)
		}
		checkUses(t, m)
		if format.Sniff(bytes.NewReader(data), int64(len(data))) == format.Unknown {
			t.Error("a model of unknown format")
		}
	})
}
