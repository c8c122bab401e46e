package tensor_test

import (
	"errors"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

func TestUnpackTextRefuses(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]tensor.Tensor{
		"numbers":  {DType: tensor.Float32, Shape: []int64{1}, Data: make([]byte, 4)},
		"a scalar": {DType: tensor.Uint8, Shape: []int64{}, Data: []byte("a")},
		"no width": {DType: tensor.Uint8, Shape: []int64{1, 0}},
		"a zero":   {DType: tensor.Uint8, Shape: []int64{1, 3}, Data: []byte("a\x00b")},
		"no UTF-8": {DType: tensor.Uint8, Shape: []int64{1, 1}, Data: []byte{0xff}},
	} {
		if texts, err := tensor.UnpackText(bad); !errors.Is(err, tensor.ErrMalformed) {
			t.Errorf("%s: text %q and error %v, want ErrMalformed", name, texts, err)
		}
	}
}
