package tensor_test

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

const fileElements = 1 << 20

func benchFile(b *testing.B) *tensor.File {
	b.Helper()
	var buf bytes.Buffer
	x := must(tensor.New(make([]float32, fileElements), fileElements/1024, 1024))
	if err := tensor.Write(&buf, map[string]tensor.Tensor{"x": x}, nil); err != nil {
		b.Fatal(err)
	}
	return must(tensor.NewFile(bytes.NewReader(buf.Bytes()), int64(buf.Len()), tensor.Limits{}))
}

func BenchmarkFileTensor(b *testing.B) {
	f := benchFile(b)
	b.SetBytes(4 * fileElements)
	for b.Loop() {
		must(f.Tensor("x"))
	}
}

func BenchmarkFileRow(b *testing.B) {
	f := benchFile(b)
	b.SetBytes(4 * 1024)
	for b.Loop() {
		must(f.Rows("x", 17, 18))
	}
}

// BenchmarkOpen is the header of a model of many tensors.
func BenchmarkOpen(b *testing.B) {
	tensors := map[string]tensor.Tensor{}
	for i := range 1000 {
		tensors["layers."+string(rune('a'+i%26))+string(rune('a'+i/26))] = must(tensor.New([]float32{1, 2}, 2))
	}
	var buf bytes.Buffer
	if err := tensor.Write(&buf, tensors, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		must(tensor.NewFile(bytes.NewReader(buf.Bytes()), int64(buf.Len()), tensor.Limits{}))
	}
}
