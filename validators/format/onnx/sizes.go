package onnx

import (
	"fmt"
	"strings"
)

// Sizes proposes a range for an open dimension: sizes with which the graph runs, as far as its nodes
// tell. The zero Sizes proposes nothing.
type Sizes struct {
	Min, Opt, Max int64
	Why           string // in a few words, for a comment
}

// The sizes that are proposed where the graph allows them.
const (
	pixels      = 224 // height and width of images, as most networks are trained
	samples     = 1024
	voxels      = 32
	tokens      = 16
	mostTokens  = 64
	largestSize = 512 // up to which the one size that fits is looked for
)

// sizes proposes sizes for the open dimensions of an input except its batch.
func (t *trials) sizes(input Value, id int32, f found) map[int]Sizes {
	all := map[int]Sizes{}
	shape, open := f.openShape(input.Shape, all)
	if len(open) == 0 {
		return all
	}
	fits := func(n int64) (bool, int64) {
		at := append([]int64{}, shape...)
		for _, axis := range open {
			at[axis] = n
		}
		return t.run(id, at)
	}
	var s Sizes
	switch {
	case f.windows > 0 && f.windows < 4:
		s = windowed([]int64{samples, pixels, voxels}[f.windows-1], fits)
	case strings.Contains(input.DType, "int") || len(shape) > 2:
		s = sequence(f.positions, fits)
		if f.batch(shape) == 1 && s.Opt > 1 {
			s.Min = max(s.Min, 2) // so that no case is taken for one row of a batch
		}
	}
	for _, axis := range open {
		if s.Opt > 0 {
			all[axis] = s
		}
	}
	return all
}

// batch is the dimension that is the batch of an input of a shape.
func (got found) batch(shape []int64) int {
	if got.recurrent && len(shape) == 3 {
		return 1
	}
	return 0
}

// openShape is a shape with 1 for the batch, and the axes that are open otherwise. It adds to sizes
// the channels that convolutions say. No axis is open beside a size that none has.
func (got found) openShape(of []Dim, sizes map[int]Sizes) (shape []int64, open []int) {
	shape = make([]int64, len(of))
	for axis, d := range of {
		switch {
		case d.Known && (d.Value < 1 || d.Value > maxFlowNumber):
			return shape, nil
		case d.Known:
			shape[axis] = d.Value
		case axis == got.batch(shape):
			shape[axis] = 1
		case axis == 1 && got.channelsFirst(of):
			shape[axis] = got.channels
			sizes[axis] = Sizes{got.channels, got.channels, got.channels, "channels of the first convolution"}
		default:
			open = append(open, axis)
		}
	}
	return shape, open
}

// channelsFirst reports whether axis 1 of a shape is the channels that convolutions read. It is not
// where nodes add the channels, or where they come last.
func (got found) channelsFirst(of []Dim) bool {
	last := of[len(of)-1]
	return got.channels > 0 && len(of) == got.windows+2 && !(last.Known && last.Value == got.channels && last.Value <= 4)
}

// windowed proposes sizes for what convolutions read: multiples of their strides, so that halves
// that are joined later are of one size.
func windowed(base int64, fits func(int64) (bool, int64)) Sizes {
	_, step := fits(base)
	ok, opt := false, int64(0)
	for n := roundUp(base, step); n <= base+16*step && !ok; n += step {
		opt = n
		ok, _ = fits(n)
	}
	if !ok {
		return fixedSize(base, fits)
	}
	s := Sizes{Min: opt, Opt: opt, Max: opt, Why: "convolutions with strides of " + decimal(uint64(step))}
	for n := roundUp((opt+1)/2, step); n < opt && s.Min == opt; n += step {
		if ok, _ := fits(n); ok {
			s.Min = n
		}
	}
	if ok, _ := fits(opt + roundUp(32, step)); ok {
		s.Max = opt + roundUp(32, step)
	}
	if s.Min == s.Max {
		s.Why = "the weights fit this size"
	}
	return s
}

// roundUp is the smallest multiple of step that is not below n.
func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }

// sequence proposes lengths, of which a table of positions may allow only so many.
func sequence(positions int64, fits func(int64) (bool, int64)) Sizes {
	longest := int64(mostTokens)
	why := fmt.Sprintf("sequences of any length, and %d is a guess: put the longest in use there", longest)
	if positions > 0 {
		longest = min(longest, positions)
		why = fmt.Sprintf("sequence of at most %d positions", positions)
	}
	s := Sizes{Opt: min(tokens, longest), Max: longest, Why: why}
	for ok, _ := fits(s.Opt); !ok; ok, _ = fits(s.Opt) {
		if s.Opt++; s.Opt > longest {
			return fixedSize(min(tokens, longest), fits)
		}
	}
	if ok, _ := fits(longest); !ok {
		s.Max = s.Opt
		if positions <= 0 {
			s.Why = fmt.Sprintf("sequences of %d, and not of %d", s.Opt, longest)
		}
	}
	s.Min = s.Opt
	for ok := true; ok && s.Min > 1; {
		if ok, _ = fits(s.Min - 1); ok {
			s.Min--
		}
	}
	return s
}

// fixedSize looks for a size that fits, above base first: a size of 1 fits by broadcasting too.
func fixedSize(base int64, fits func(int64) (bool, int64)) Sizes {
	const why = "the weights fit this size"
	for n := base; n <= largestSize; n++ {
		if ok, _ := fits(n); ok {
			return Sizes{n, n, n, why}
		}
	}
	for n := base - 1; n > 0; n-- {
		if ok, _ := fits(n); ok {
			return Sizes{n, n, n, why}
		}
	}
	return Sizes{}
}
