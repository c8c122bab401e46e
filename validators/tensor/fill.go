package tensor

import "math"

// Many models write a constant where there is no answer: -1e4 or the lowest float32 for actions that are not
// allowed, -9999 for depths that are not known. Such fill values make the spread of an output so large that no
// error of the others counts. So they are told from the others by how far from them they are, and left out.

// Fills selects the values of an output that can be fill values.
type Fills int

// The rules. Fill values are at least [fillApart] times as large as all others, above 1, and there are two or
// more. All values that are so far out must have one magnitude or, with FillsNear, nearly: a mask that is added to
// scores leaves a part of them. That is not for quantities, because one can be far larger than the others.
const (
	FillsNone Fills = iota
	FillsEqual
	FillsNear
)

const (
	fillApart = 10
	nearApart = 100  // and at least nearLeast, of fill values that are not equal
	nearLeast = 1000 // less may be a score
	nearWidth = 1.1  // the largest divided by the smallest
	// fillAgrees is by how much of itself an engine's value may be off where the reference has a fill value.
	fillAgrees = 0.01
)

// NoFill is the magnitude of fill values of an output without any.
var NoFill = math.Inf(1)

// Magnitudes collects how large the values of an output are. The zero Magnitudes has none.
type Magnitudes struct {
	of    []magnitudes
	row   []magnitudes    // of one case
	Rows  int             // cases with leastInRow values or more
	fills map[float64]int // by magnitude: cases in which it is that of fill values
}

// magnitudes are those between two powers of two.
type magnitudes struct {
	n        int64
	min, max float64
}

// Add adds the values of cases; the first dimension is their number. Those that are not finite count for nothing, and
// so do tensors that are not of floats.
func (m *Magnitudes) Add(t Tensor) {
	if t.DType.Class() != ClassFloat {
		return
	}
	if m.of == nil {
		m.of, m.row, m.fills = make([]magnitudes, exponents), make([]magnitudes, exponents), make(map[float64]int)
	}
	width := t.Len()
	if len(t.Shape) > 0 && t.Shape[0] > 0 {
		width /= int(t.Shape[0])
	}
	to := m.of
	if width >= leastInRow {
		to = m.row
	}
	var values [chunk]float64
	size := t.DType.Size()
	for at, n := 0, t.Len(); at < n; {
		now := values[:min(chunk, n-at, width-at%width)]
		decode(now, t.DType, t.Data[at*size:])
		for _, v := range now {
			add(to, math.Abs(v))
		}
		if at += len(now); at%width == 0 && width >= leastInRow {
			m.endRow()
		}
	}
}

// exponents is how many powers of two float64 has.
const exponents = 1 << 11

// leastInRow is how many values a case has in which fill values are told from others by themselves.
const leastInRow = 8

// endRow adds a case to the others.
func (m *Magnitudes) endRow() {
	m.Rows++
	if fill := fillOf(m.row, FillsEqual); fill < NoFill {
		m.fills[fill]++
	}
	for i, of := range m.row {
		if of.n > 0 {
			m.of[i].join(of)
			m.row[i] = magnitudes{}
		}
	}
}

func (m *magnitudes) join(o magnitudes) {
	if m.n == 0 {
		*m = o
		return
	}
	*m = magnitudes{m.n + o.n, min(m.min, o.min), max(m.max, o.max)}
}

func add(of []magnitudes, v float64) {
	if v > 0 && v <= math.MaxFloat64 {
		of[math.Float64bits(v)>>52].join(magnitudes{1, v, v})
	}
}

// Fill returns the magnitude from which values are fill values: [NoFill] if there are none. A fill value in half of the
// cases is also one if another case has large values, which would hide it in all cases together.
func (m *Magnitudes) Fill(by Fills) float64 {
	if fill := fillOf(m.of, by); fill < NoFill || by == FillsNone {
		return fill
	}
	found := NoFill
	for fill, cases := range m.fills {
		if 2*cases >= m.Rows && m.Rows > 1 {
			found = min(found, fill)
		}
	}
	return found
}

func fillOf(of []magnitudes, by Fills) float64 {
	fill := NoFill
	far := magnitudes{min: math.Inf(1)}
	for i := len(of) - 1; i >= 0 && by != FillsNone; i-- {
		next := of[i]
		if next.n == 0 {
			continue
		}
		if far.n > 0 && far.min >= fillApart*next.max {
			if !far.fill(by, next.max) {
				break
			}
			fill, far = far.min, magnitudes{min: math.Inf(1)}
		}
		far = magnitudes{far.n + next.n, min(far.min, next.min), max(far.max, next.max)}
	}
	return fill
}

// fill reports whether these are fill values, beside others that have at most a magnitude.
func (m *magnitudes) fill(by Fills, others float64) bool {
	equal := m.n > 1 && m.min > 1 && m.min == m.max
	near := m.n > 1 && m.min >= nearLeast && m.min >= nearApart*others && m.max <= nearWidth*m.min
	return equal || by == FillsNear && near
}

// leaveOut makes fill values of both sides that agree the same infinity, which counts for nothing.
func leaveOut(ref, eng []float64, fill float64) {
	for i, r := range ref {
		if filled(r, eng[i], fill) {
			ref[i] = math.Copysign(math.Inf(1), r)
			eng[i] = ref[i]
		}
	}
}

// filled reports whether both sides have a fill value. An infinity is none: no number is within a part of it.
func filled(ref, eng, fill float64) bool {
	size := math.Abs(ref)
	return size >= fill && size <= math.MaxFloat64 && math.Abs(eng-ref) <= fillAgrees*size
}
