package onnx

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// zeroPointRange is the range of zero points by type; types of floating point have none, and those of 4 bits need no check.
var zeroPointRange = map[uint64][2]float64{2: {0, 255}, 3: {-128, 127}, 4: {0, 65535}, 5: {-32768, 32767}, 6: {0, 0}}

// biasTolerance is how far the scale of a bias may be from the product, relative to it: float32 rounds each of them to 6e-8.
const biasTolerance = 1e-3

// constant is a constant that was found; nil for what is computed.
func (q *scaleReader) constant(name string) *scaleTensor {
	if t := q.constants[name]; name != "" && t != nil && t.found {
		return t
	}
	return nil
}

func (q *scaleReader) check(n *scaleNode) error {
	for _, at := range scaledInputs[n.op] {
		data := ""
		if at[0] >= 0 {
			data = n.input(at[0])
		}
		if err := q.checkScale(n, data, n.input(at[1]), n.input(at[2])); err != nil {
			return err
		}
	}
	switch n.op {
	case "DequantizeLinear":
		return q.checkPair(n)
	case "Conv", "ConvTranspose", "Gemm":
		return q.checkBias(n)
	}
	return nil
}

// checkScale checks a scale and its zero point, and that they fit what they scale.
func (q *scaleReader) checkScale(n *scaleNode, data, scale, zero string) error {
	s := q.constant(scale)
	if s == nil {
		return nil
	}
	for i, v := range s.values {
		if !(v > 0) || math.IsInf(v, 0) {
			return invalid("scale %v%s: want a finite number above 0", v, place(s, i))
		}
	}
	x := q.constant(data)
	if err := checkZeroPoint(n, x, s, q.constant(zero)); err != nil {
		return err
	}
	if n.op != "QuantizeLinear" && n.op != "DequantizeLinear" {
		return nil
	}
	return checkAxis(n, x, s)
}

// place says which element of a tensor it is; nothing where there is one.
func place(t *scaleTensor, i int) string {
	if len(t.values) == 1 {
		return ""
	}
	return " at index " + decimal(uint64(i))
}

func checkZeroPoint(n *scaleNode, x, s, z *scaleTensor) error {
	if z == nil {
		return nil
	}
	ends, known := zeroPointRange[z.dtype]
	switch {
	case !known && slices.Contains([]uint64{1, 10, 11, 16, 7, 9}, z.dtype):
		return invalid("its zero point is %s: want an integer type of at most 32 bits", dtypeName(z.dtype))
	case n.op == "DequantizeLinear" && x != nil && x.dtype != z.dtype:
		return invalid("its zero point is %s, and what it dequantizes %s: want one type", dtypeName(z.dtype), dtypeName(x.dtype))
	case z.count() != s.count():
		return invalid("%s and %s: want as many", registry.Count(int(z.count()), "zero point"), registry.Count(int(s.count()), "scale"))
	}
	for i, v := range z.values {
		if known && (v < ends[0] || v > ends[1]) {
			return invalid("zero point %v%s: want %v to %v, as it is %s", v, place(z, i), ends[0], ends[1], dtypeName(z.dtype))
		}
	}
	return nil
}

// checkAxis checks that there are as many scales as indices along the axis, or blocks of them.
func checkAxis(n *scaleNode, x, s *scaleTensor) error {
	switch {
	case n.block < 0:
		return invalid("block_size %d: want at least 1", n.block)
	case len(s.dims) > 1 && n.block == 0:
		return invalid("its scales have %d dimensions: want one, or a block_size", len(s.dims))
	case len(s.dims) == 0 || s.count() == 1 && n.block == 0 || x == nil:
		return nil
	}
	axis := n.axis
	if axis < 0 {
		axis += int64(len(x.dims))
	}
	if axis < 0 || axis >= int64(len(x.dims)) {
		return invalid("axis %d of a tensor of %d dimensions", n.axis, len(x.dims))
	}
	if n.block == 0 {
		if x.dims[axis] != s.dims[0] {
			return invalid("%d scales along axis %d, where the tensor has %d", s.dims[0], n.axis, x.dims[axis])
		}
		return nil
	}
	want := slices.Clone(x.dims)
	want[axis] = (want[axis] + n.block - 1) / n.block
	if !slices.Equal(want, s.dims) {
		return invalid("scales of shape %v for a tensor of shape %v in blocks of %d along axis %d: want %v", s.dims, x.dims, n.block, n.axis, want)
	}
	return nil
}

// checkPair checks that a node dequantizes as the node before it quantized.
func (q *scaleReader) checkPair(n *scaleNode) error {
	before := q.makers[n.input(0)]
	if before == nil || before.op != "QuantizeLinear" {
		return nil
	}
	for _, part := range []struct {
		what string
		at   int
	}{{"scale", 1}, {"zero point", 2}} {
		if n.input(part.at) == before.input(part.at) {
			continue
		}
		own, other := q.constant(n.input(part.at)), q.constant(before.input(part.at))
		if n.input(part.at) != "" && own == nil || before.input(part.at) != "" && other == nil {
			continue // computed while the model runs
		}
		if i, a, b := firstOther(own, other); i >= 0 {
			return invalid("its %s %v at index %d is not that of %s before it, %v", part.what, a, i, before, b)
		}
	}
	if s := q.constant(n.input(1)); s != nil && s.count() > 1 && n.axis != before.axis {
		return invalid("its axis %d is not that of %s before it, %d", n.axis, before, before.axis)
	}
	return nil
}

// firstOther is the first place in which two constants differ, -1 for none. One that is left out is 0.
func firstOther(a, b *scaleTensor) (i int, own, other float64) {
	value := func(t *scaleTensor, i int) float64 {
		if t == nil || len(t.values) == 0 {
			return 0
		}
		return t.values[min(i, len(t.values)-1)]
	}
	n := 1
	for _, t := range []*scaleTensor{a, b} {
		if t != nil {
			n = max(n, len(t.values))
		}
	}
	for i := range n {
		if x, y := value(a, i), value(b, i); x != y {
			return i, x, y
		}
	}
	return -1, 0, 0
}

// checkBias checks the scale of an int32 bias, which runtimes do not look at: they add it to sums of products of integers.
func (q *scaleReader) checkBias(n *scaleNode) error {
	var scales [3]*scaleTensor
	for i := range scales {
		maker := q.makers[n.input(i)]
		if maker == nil || maker.op != "DequantizeLinear" {
			return nil
		}
		if x := q.constant(maker.input(0)); i == 2 && (x == nil || x.dtype != 6) {
			return nil
		}
		if scales[i] = q.constant(maker.input(1)); scales[i] == nil || len(scales[i].values) == 0 {
			return nil
		}
	}
	input, weights, bias := scales[0].values, scales[1].values, scales[2].values
	if len(input) != 1 {
		return nil
	}
	if len(bias) != 1 && len(weights) != 1 && len(bias) != len(weights) {
		return invalid("its bias has %s and its weights have %d: want as many", registry.Count(len(bias), "scale"), len(weights))
	}
	for i := range max(len(bias), len(weights)) {
		want, got := input[0]*weights[min(i, len(weights)-1)], bias[min(i, len(bias)-1)]
		if math.Abs(got-want) > biasTolerance*want {
			return invalid("the scale of its bias is %v at index %d: want that of its input times that of its weights, %v", got, i, want)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, format, args...)
}
