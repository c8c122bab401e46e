package tensorfile_test

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

const fileElements = 1 << 20

func benchFile(b *testing.B) *tensorfile.File {
	b.Helper()
	var buf bytes.Buffer
	x := tensortest.Must(tensor.New(make([]float32, fileElements), fileElements/1024, 1024))
	if err := tensorfile.Write(&buf, map[string]tensor.Tensor{"x": x}, nil); err != nil {
		b.Fatal(err)
	}
	return tensortest.Must(tensorfile.NewFile(bytes.NewReader(buf.Bytes()), int64(buf.Len()), tensorfile.Limits{}))
}

func BenchmarkFileTensor(b *testing.B) {
	f := benchFile(b)
	b.SetBytes(4 * fileElements)
	for b.Loop() {
		tensortest.Must(f.Tensor("x"))
	}
}

func BenchmarkFileRow(b *testing.B) {
	f := benchFile(b)
	b.SetBytes(4 * 1024)
	for b.Loop() {
		tensortest.Must(f.Rows("x", 17, 18))
	}
}

// BenchmarkOpen is the header of a model of many tensors.
func BenchmarkOpen(b *testing.B) {
	tensors := map[string]tensor.Tensor{}
	for i := range 1000 {
		tensors["layers."+string(rune('a'+i%26))+string(rune('a'+i/26))] = tensortest.Must(tensor.New([]float32{1, 2}, 2))
	}
	var buf bytes.Buffer
	if err := tensorfile.Write(&buf, tensors, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tensortest.Must(tensorfile.NewFile(bytes.NewReader(buf.Bytes()), int64(buf.Len()), tensorfile.Limits{}))
	}
}
