package tensor_test

import (
	"encoding/binary"
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

const benchElements = 1 << 20

// BenchmarkSumFloat32 is what reading the bytes costs at the least.
func BenchmarkSumFloat32(b *testing.B) {
	ref, _ := benchPair(b)
	b.SetBytes(int64(len(ref.Data)))
	var sum float64
	for b.Loop() {
		for data := ref.Data; len(data) >= 4; data = data[4:] {
			sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
		}
	}
	_ = sum
}

func BenchmarkCompareFloat32(b *testing.B) {
	ref, eng := benchPair(b)
	benchCompare(b, ref, eng)
}

func BenchmarkCompareFloat32Equal(b *testing.B) {
	ref, _ := benchPair(b)
	benchCompare(b, ref, ref)
}

func BenchmarkCompareFloat16(b *testing.B) {
	t := tensor.Tensor{DType: tensor.Float16, Shape: []int64{benchElements / 1024, 1024}, Data: make([]byte, 2*benchElements)}
	for i := range t.Data {
		t.Data[i] = byte(i*7) & 0x7b // no exponent of all ones
	}
	benchCompare(b, t, t)
}

// BenchmarkCompareSmall is a classifier's output of one case.
func BenchmarkCompareSmall(b *testing.B) {
	ref, eng := benchPair(b)
	ref, eng = flat(b, ref, 10), flat(b, eng, 10)
	b.ReportAllocs()
	benchCompare(b, ref, eng)
}

func benchCompare(b *testing.B, ref, eng tensor.Tensor) {
	b.Helper()
	acc := tensor.NewComparison(tensor.Options{RTol: 1e-4, ATol: 1e-5})
	b.SetBytes(int64(len(ref.Data)))
	for b.Loop() {
		if err := acc.Add(0, ref, eng); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPair(b *testing.B) (ref, eng tensor.Tensor) {
	b.Helper()
	x, y := make([]float32, benchElements), make([]float32, benchElements)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
		y[i] = x[i] * (1 + 1e-6*float32(i%13))
	}
	return tensortest.Must(tensor.New(x, benchElements/1024, 1024)), tensortest.Must(tensor.New(y, benchElements/1024, 1024))
}

func flat(b *testing.B, t tensor.Tensor, n int) tensor.Tensor {
	b.Helper()
	return tensor.Tensor{DType: t.DType, Shape: []int64{int64(n)}, Data: t.Data[:n*t.DType.Size()]}
}
