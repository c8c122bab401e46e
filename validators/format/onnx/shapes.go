package onnx

import "math"

// The shapes that operators of ONNX make of shapes (onnx/docs/Operators.md). A nil shape is not
// known, and what follows from it is not known either. A second result of false says that the
// operator cannot run.

// broadcast is the shape of arithmetic on two tensors (onnx/docs/Broadcasting.md).
func broadcast(a, b []int64) ([]int64, bool) {
	if a == nil || b == nil {
		return nil, true
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]int64{}, a...)
	for i := range b {
		at := len(a) - len(b) + i
		switch {
		case out[at] == 1:
			out[at] = b[i]
		case b[i] != 1 && b[i] != out[at]:
			return nil, false
		}
	}
	return out, true
}

func gathered(table, index []int64, axis int64) []int64 {
	if axis < 0 {
		axis += int64(len(table))
	}
	if table == nil || index == nil || axis < 0 || axis >= int64(len(table)) {
		return nil
	}
	out := append([]int64{}, table[:axis]...)
	return append(append(out, index...), table[axis+1:]...)
}

func transposed(x, perm []int64) []int64 {
	if len(perm) != len(x) {
		return nil
	}
	out := make([]int64, len(x))
	for i, from := range perm {
		if from < 0 || from >= int64(len(x)) {
			return nil
		}
		out[i] = x[from]
	}
	return out
}

// convolved is the shape after Conv with weights [out channels, in channels, kernel...].
func convolved(n flowNode, x, weights []int64) ([]int64, bool) {
	if len(x) < 3 || len(weights) != len(x) {
		return nil, true
	}
	if x[1] != weights[1]*n.number("group", 1) {
		return nil, false
	}
	out := []int64{x[0], weights[0]}
	return windows(n, x, weights[2:], out, false)
}

func pooled(n flowNode, x []int64) ([]int64, bool) {
	kernel := n.numbers["kernel_shape"]
	if len(x) < 3 || len(kernel) != len(x)-2 {
		return nil, true
	}
	return windows(n, x, kernel, []int64{x[0], x[1]}, n.number("ceil_mode", 0) != 0)
}

// windows adds to out how many windows fit on each axis after the second.
func windows(n flowNode, x, kernel, out []int64, ceil bool) ([]int64, bool) {
	for i := range kernel {
		size, step := x[2+i], listed(n, "strides", i, 1)
		if step < 1 || kernel[i] < 1 {
			return nil, false
		}
		if n.autoPad == "SAME_UPPER" || n.autoPad == "SAME_LOWER" {
			out = append(out, (size+step-1)/step)
			continue
		}
		last := size + listed(n, "pads", i, 0) + listed(n, "pads", len(kernel)+i, 0) - listed(n, "dilations", i, 1)*(kernel[i]-1) - 1
		if last < 0 {
			return nil, false
		}
		if ceil {
			last += step - 1
		}
		out = append(out, last/step+1)
	}
	return out, true
}

// upConvolved is the shape after ConvTranspose with weights [in channels, out channels, kernel...].
func upConvolved(n flowNode, x, weights []int64) ([]int64, bool) {
	if len(x) < 3 || len(weights) != len(x) || n.autoPad != "" && n.autoPad != "NOTSET" {
		return nil, true
	}
	out := []int64{x[0], weights[1] * n.number("group", 1)}
	for i, k := range weights[2:] {
		size := (x[2+i]-1)*listed(n, "strides", i, 1) + listed(n, "dilations", i, 1)*(k-1) + 1
		out = append(out, size-listed(n, "pads", i, 0)-listed(n, "pads", len(x)-2+i, 0)+listed(n, "output_padding", i, 0))
	}
	return out, true
}

// listed gives a number of an attribute that is a list.
func listed(n flowNode, name string, i int, otherwise int64) int64 {
	if all := n.numbers[name]; i < len(all) {
		return all[i]
	}
	return otherwise
}

func onePixel(x []int64) []int64 {
	if len(x) < 3 {
		return nil
	}
	out := append([]int64{}, x...)
	for i := 2; i < len(out); i++ {
		out[i] = 1
	}
	return out
}

func scaled(x []int64, scales []float64) []int64 {
	if len(x) == 0 || len(scales) != len(x) {
		return nil
	}
	out := make([]int64, len(x))
	for i := range x {
		size := math.Floor(float64(x[i]) * scales[i])
		if !(size >= 0 && size <= maxFlowNumber) {
			return nil
		}
		out[i] = int64(size)
	}
	return out
}

func elements(x []int64) int64 {
	n := int64(1)
	for _, size := range x {
		n *= size
	}
	return n
}

func flat(x []int64, axis int64) []int64 {
	if axis < 0 {
		axis += int64(len(x))
	}
	if x == nil || axis < 0 || axis > int64(len(x)) {
		return nil
	}
	return []int64{elements(x[:axis]), elements(x[axis:])}
}

// reshaped is the shape after Reshape to a constant one: 0 keeps a size, -1 is what is left.
func reshaped(x []int64, to []float64) ([]int64, bool) {
	if x == nil || len(to) == 0 {
		return nil, true
	}
	out, left, free := make([]int64, len(to)), elements(x), -1
	for i, size := range to {
		switch {
		case size == 0 && i < len(x):
			out[i] = x[i]
		case size == -1 && free < 0:
			free = i
			continue
		case size >= 1 && size <= maxFlowNumber:
			out[i] = int64(size)
		default:
			return nil, true
		}
		if out[i] < 1 || left%out[i] != 0 {
			return nil, false
		}
		left /= out[i]
	}
	if free >= 0 {
		out[free] = left
	} else if left != 1 {
		return nil, false
	}
	// What does not fit into the rows of a case makes more cases of it.
	return out, free != 0 || x[0] != 1 || left == 1 || len(out) < 2
}

// product is the shape of a matrix product with a matrix [rows, columns], or its transpose.
func product(x, matrix []int64, transposed bool) ([]int64, bool) {
	if len(x) < 2 || len(matrix) != 2 {
		return nil, true
	}
	rows, columns := matrix[0], matrix[1]
	if transposed {
		rows, columns = columns, rows
	}
	if x[len(x)-1] != rows {
		return nil, false
	}
	return append(append([]int64{}, x[:len(x)-1]...), columns), true
}
