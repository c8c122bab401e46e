package tensor

import (
	"encoding/binary"

	half "github.com/x448/float16"
)

// NewFloat16 returns a float16 tensor of values, in C order, each rounded to float32 and then to the
// nearest float16: beyond 65,504 to infinity. If the number of values does not match shape, it returns an
// error.
func NewFloat16(values []float64, shape ...int64) (Tensor, error) {
	t := Tensor{DType: Float16, Shape: append([]int64{}, shape...), Data: make([]byte, 0, 2*len(values))}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint16(t.Data, half.Fromfloat32(float32(v)).Bits())
	}
	return t, t.Validate()
}
