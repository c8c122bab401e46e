package cases

import (
	"math"
	"math/rand/v2"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Draw is the distribution of the values of a generated input. The zero Draw leaves it to the
// type: standard normal numbers for floats, 0 and 1 for all else.
type Draw struct {
	Bounded  bool // all values from Min to Max are as likely
	Min, Max float64
	Values   []float64 // these are as likely, and there are no others
	Mask     bool      // 1 up to some place of the last axis and 0 behind it; the first case has no 0
	Rows     int64     // rows of the table that the values select from, which bound them; 0 for none
}

// Check checks that a type has the values, and a table the rows. Errors: CodeInvalid.
func (d Draw) Check(dtype tensor.DType) error {
	least, most := reach(dtype)
	for _, v := range d.limits() {
		if v < least || v > most || v != v || dtype.Class() != tensor.ClassFloat && v != math.Trunc(v) {
			return registry.Errorf(registry.CodeInvalid, "%v is no value of %s: want numbers from %v to %v%s",
				v, dtype, least, most, wholeNote(dtype))
		}
		if d.Rows > 0 && (v >= float64(d.Rows) || v < 0) {
			return registry.Errorf(registry.CodeInvalid,
				"the graph selects rows of a table by it, and %v is none of %d rows: want numbers from 0 to %d", v, d.Rows, d.Rows-1)
		}
	}
	return nil
}

// limits are the numbers that bound the values, or that are the values.
func (d Draw) limits() []float64 {
	if d.Bounded {
		return []float64{d.Min, d.Max}
	}
	return d.Values
}

func wholeNote(dtype tensor.DType) string {
	if dtype.Class() == tensor.ClassFloat {
		return ""
	}
	return ", without a fraction"
}

// reach gives the least and the largest number of a type that is drawn exactly.
func reach(dtype tensor.DType) (least, most float64) {
	switch dtype {
	case tensor.Float32:
		return -math.MaxFloat32, math.MaxFloat32
	case tensor.Float64:
		return -math.MaxFloat64, math.MaxFloat64
	case tensor.Int64:
		return -maxWhole, maxWhole
	case tensor.Int32:
		return math.MinInt32, math.MaxInt32
	case tensor.Float16:
		return -65504, 65504
	case tensor.Int16:
		return math.MinInt16, math.MaxInt16
	case tensor.Int8:
		return math.MinInt8, math.MaxInt8
	case tensor.Uint8:
		return 0, math.MaxUint8
	case tensor.Uint16:
		return 0, math.MaxUint16
	case tensor.Uint32:
		return 0, math.MaxUint32
	}
	return 0, 1
}

// sampler draws the values of one input, case after case.
type sampler struct {
	Draw
	random *rand.Rand
	float  bool
	row    int64     // values of a case
	length int64     // of the last axis
	edges  []float64 // the boundary values: some values of some cases are these
	every  int64     // one case in so many has them
	from   int64     // the first that does
	at     int64     // how many values were drawn
	sure   int64     // place of a boundary value in this case; below 0 for none
	used   int       // how many boundary values there were
	ones   int64     // of a mask, in this case
}

// newSampler draws for count cases of a shape.
func newSampler(random *rand.Rand, d Draw, dtype tensor.DType, count int64, shape []int64) *sampler {
	s := &sampler{Draw: d, random: random, float: dtype.Class() == tensor.ClassFloat, row: 1, length: 1}
	for _, size := range shape {
		s.row *= size
		s.length = size
	}
	switch {
	case d.Mask:
	case d.Bounded && d.Min < 0 && d.Max > 0:
		s.edges = []float64{d.Min, d.Max, 0}
	case d.Bounded:
		s.edges = []float64{d.Min, d.Max}
	case len(d.Values) > 0:
		s.edges = []float64{slices.Min(d.Values), slices.Max(d.Values)}
	case s.float:
		s.edges = []float64{0}
	}
	if len(s.edges) > 0 {
		s.every = min(max(count/int64(len(s.edges)), 1), 4)
		s.from = random.Int64N(s.every)
	}
	return s
}

// next draws a value.
func (s *sampler) next() float64 {
	number, place := s.at/s.row, s.at%s.row
	s.at++
	if place == 0 {
		s.begin(number)
	}
	switch {
	case s.Mask && place%s.length < s.ones:
		return 1
	case s.Mask:
		return 0
	case s.sure >= 0 && (place == s.sure || s.random.IntN(8) == 0):
		s.used++
		return s.edges[(s.used-1)%len(s.edges)]
	case len(s.Values) > 0:
		return s.Values[s.random.IntN(len(s.Values))]
	case s.Bounded && s.float:
		part := s.random.Float64()
		return s.Min*(1-part) + s.Max*part
	case s.Bounded:
		return s.Min + float64(s.random.Int64N(int64(s.Max-s.Min)+1))
	case s.float:
		return s.random.NormFloat64()
	}
	return float64(s.random.Int64N(2))
}

// begin starts a case.
func (s *sampler) begin(number int64) {
	s.sure = -1
	if len(s.edges) > 0 && number%s.every == s.from {
		s.sure = s.random.Int64N(s.row)
	}
	if s.Mask {
		s.ones = s.length
		if number > 0 {
			s.ones = 1 + s.random.Int64N(s.length)
		}
	}
}
