package tensorfile_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

func TestWriteNpz(t *testing.T) {
	t.Parallel()
	x, err := tensor.New([]float32{1, -2, 3.5, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tensor.New([]int64{7})
	if err != nil {
		t.Fatal(err)
	}
	half := tensor.Tensor{DType: tensor.Float16, Shape: []int64{2}, Data: []byte{0, 0x3c, 0, 0xc0}}
	want := map[string]tensor.Tensor{"input.x": x, "output.y": half, "scalar": n}
	var out bytes.Buffer
	if err := tensorfile.WriteNpz(&out, want); err != nil {
		t.Fatal(err)
	}
	read, err := readNpz(out.Bytes(), tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		got := read[name]
		if got.DType != w.DType || len(got.Shape) != len(w.Shape) || !reflect.DeepEqual(got.Data, w.Data) {
			t.Errorf("%s: %v, want %v", name, got, w)
		}
	}
	err = tensorfile.WriteNpz(&out, map[string]tensor.Tensor{"b": {DType: tensor.BFloat16, Shape: []int64{1}, Data: []byte{0, 0}}})
	if !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("bfloat16: error %v, want ErrUnsupported", err)
	}
}
