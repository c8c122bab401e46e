package goldenset

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	// ExtremeValue is the magnitude from which a value stands for infinity, as in masks.
	ExtremeValue = 1e30
	// maxScales is how many channels have a scale of their own.
	maxScales = 256
	// mostValues is how many values a scale is computed from.
	mostValues = 1 << 14
	// outermost is the share of values at either end that say nothing about a scale: a few that are far larger than the others, as
	// some channels of language models are, would make it as large.
	outermost = 0.025
)

// Scales say over what range the values of an output go: of all, or of each index along the last axis.
type Scales struct {
	Each  bool    // index along the last axis
	Below float64 // the magnitude of values that count

	width    int // of the last axis; 0 before the first tensor
	channels []valueSample
}

// Add adds the values of a case.
func (s *Scales) Add(t tensor.Tensor) {
	width := 1
	if n := len(t.Shape); s.Each && n > 0 && t.Shape[n-1] <= maxScales {
		width = int(t.Shape[n-1])
	}
	switch {
	case width == 0:
		return
	case s.width == 0:
		s.width, s.channels = width, make([]valueSample, width)
	case s.width != width: // an index along the last axis is no channel
		s.Each, s.width, s.channels = false, 1, make([]valueSample, 1)
	}
	for i, v := range t.Float64s() {
		if math.Abs(v) < s.Below {
			s.channels[i%s.width].add(v)
		}
	}
}

// At is the scale of an element.
func (s *Scales) At(i int) float64 {
	if s.width == 0 {
		return 0
	}
	return s.channels[i%s.width].scale()
}

// Largest is the largest magnitude of values that count.
func (s *Scales) Largest(values []float64) (most float64) {
	for _, v := range values {
		if v = math.Abs(v); v > most && v < s.Below {
			most = v
		}
	}
	return most
}

// valueSample has some of the values of a channel: every one at first, and where there are many, each second, fourth and so on.
type valueSample struct {
	values     []float64
	seen, step int
	known      float64 // the scale; -1 before it is computed
}

func (s *valueSample) add(v float64) {
	if s.step == 0 {
		s.step, s.known = 1, -1
	}
	if s.seen++; (s.seen-1)%s.step != 0 {
		return
	}
	if s.values = append(s.values, v); len(s.values) < mostValues {
		return
	}
	for i := range len(s.values) / 2 {
		s.values[i] = s.values[2*i]
	}
	s.values, s.step = s.values[:len(s.values)/2], 2*s.step
}

// scale is the range of all values but the outermost, or of all where the others are equal.
func (s *valueSample) scale() float64 {
	if len(s.values) == 0 {
		return 0
	}
	if s.known < 0 {
		slices.Sort(s.values)
		last := len(s.values) - 1
		cut := int(outermost * float64(len(s.values)))
		if s.known = s.values[last-cut] - s.values[cut]; s.known == 0 {
			s.known = s.values[last] - s.values[0]
		}
	}
	return s.known
}
