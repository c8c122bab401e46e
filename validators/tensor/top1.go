package tensor

import (
	"encoding/binary"
	"math"
	"slices"
)

// Argmax returns the index of the largest value, or the lowest of several. It is -1 for an
// empty row and for a row with a NaN, which has no largest value. numpy would return the index
// of the first NaN, and a broken row might look right.
func Argmax(row []float64) int {
	p := newPeak()
	p.scan(row)
	return int(p.argmax())
}

// ArgmaxRows returns Argmax of every row along the last axis, in C order; t has
// at least one dimension.
func ArgmaxRows(t Tensor) ([]int64, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(t.Shape) == 0 {
		return nil, Errorf(ErrMismatch, "argmax of a scalar: a last dimension is needed")
	}
	width := int(t.Shape[len(t.Shape)-1])
	if width == 0 || len(t.Data) == 0 {
		return nil, nil
	}
	out := make([]int64, 0, t.Len()/width)
	var buffer [chunk]float64
	stride := width * t.DType.Size()
	for row := range slices.Chunk(t.Data, stride) {
		p := newPeak()
		for at := 0; at < width; at += chunk {
			part := buffer[:min(chunk, width-at)]
			decode(part, t.DType, row[at*t.DType.Size():])
			p.scan(part)
		}
		out = append(out, p.argmax())
	}
	return out, nil
}

// Top1 counts the answers that [Right] finds right.
func Top1(output, labels Tensor) (correct, total int, err error) {
	right, err := Right(output, labels)
	for _, r := range right {
		if r {
			correct++
		}
	}
	return correct, len(right), err
}

// Right reports for each label whether it is the output's answer. The output is either of shape
// [..., classes], and its answers are the Argmax of its rows: a row with a NaN is never right. Or
// it is integers of the shape of the labels, or of as many elements, and they are the answers. Labels are integers from 0 to
// classes-1 of shape [...] or [..., 1].
func Right(output, labels Tensor) ([]bool, error) {
	if output.DType.Class() == ClassInteger && sameClasses(output.Shape, labels.Shape) {
		return equalClasses(output, labels)
	}
	logits := output
	predicted, err := ArgmaxRows(logits)
	if err != nil {
		return nil, err
	}
	if err := checkLabels(logits, labels); err != nil {
		return nil, err
	}
	right := make([]bool, len(predicted))
	classes := logits.Shape[len(logits.Shape)-1]
	for i, p := range predicted {
		label, ok := integer(labels, i)
		if !ok || label >= uint64(classes) {
			return nil, Errorf(ErrMismatch, "label %v at row %d: expected 0 to %d", labels.Float64(i), i, classes-1)
		}
		right[i] = p >= 0 && uint64(p) == label
	}
	return right, nil
}

// sameClasses reports whether class numbers and labels have the same shape, up to a last
// dimension of 1.
func sameClasses(classes, labels []int64) bool {
	bare := func(shape []int64) []int64 {
		if n := len(shape); n > 1 && shape[n-1] == 1 {
			return shape[:n-1]
		}
		return shape
	}
	return slices.Equal(bare(classes), bare(labels))
}

// equalClasses compares class numbers with labels.
func equalClasses(classes, labels Tensor) ([]bool, error) {
	for _, t := range []Tensor{classes, labels} {
		if err := t.Validate(); err != nil {
			return nil, err
		}
	}
	if labels.DType.Class() != ClassInteger {
		return nil, Errorf(ErrMismatch, "labels are %s: expected integers", labels.DType)
	}
	right := make([]bool, labels.Len())
	for i := range right {
		c, okClass := integer(classes, i)
		l, okLabel := integer(labels, i)
		right[i] = okClass && okLabel && c == l
	}
	return right, nil
}

func checkLabels(logits, labels Tensor) error {
	if err := labels.Validate(); err != nil {
		return err
	}
	if labels.DType.Class() != ClassInteger {
		return Errorf(ErrMismatch, "labels are %s: expected integers", labels.DType)
	}
	rows := logits.Shape[:len(logits.Shape)-1]
	if !slices.Equal(labels.Shape, rows) && !slices.Equal(labels.Shape, append(slices.Clone(rows), 1)) {
		return Errorf(ErrMismatch,
			"labels have shape %v, logits %v: expected %v, one label per row", labels.Shape, logits.Shape, rows)
	}
	if logits.Shape[len(rows)] == 0 && labels.Len() > 0 {
		return Errorf(ErrMismatch, "logits of shape %v have no classes", logits.Shape)
	}
	return nil
}

// integer returns element i of an integer tensor, exactly, and false if it is negative.
func integer(t Tensor, i int) (uint64, bool) {
	if t.DType == Uint64 {
		return binary.LittleEndian.Uint64(t.Data[8*i:]), true
	}
	v := t.Float64(i) // its sign, and any index that memory can hold, are exact
	return uint64(max(v, 0)), v >= 0
}

// top1 counts the rows in which the argmax of both sides agrees.
type top1 struct {
	width, at    int64
	ref, eng     peak
	row          ranked
	Rows, agreed int64
	silent       int64   // rows that agree and say nothing
	prefix       int64   // rows before the first that does not agree
	fill         float64 // the magnitude from which values are fill values
	again        bool    // the case is a copy of another
	classes      *answered
}

// newTop1 returns a counter for rows along the last axis. It counts nothing if a row has fewer
// than two elements.
func newTop1(shape []int64, fill float64) top1 {
	t := top1{ref: newPeak(), eng: newPeak(), fill: fill}
	if len(shape) > 0 && shape[len(shape)-1] > 1 {
		t.width = shape[len(shape)-1]
	}
	if t.width > 0 {
		t.classes = new(answered)
	}
	return t
}

// misses returns the share of rows with another argmax, of those that say something; NaN without any.
func (t *top1) misses() float64 {
	if t.again || t.Rows == t.silent {
		return math.NaN()
	}
	return float64(t.Rows-t.agreed) / float64(t.Rows-t.silent)
}

// feed processes the next elements of both sides.
func (t *top1) feed(ref, eng []float64) {
	if t.width == 0 {
		return
	}
	for len(ref) > 0 {
		n := min(t.width-t.at, int64(len(ref)))
		t.ref.scan(ref[:n])
		t.eng.scan(eng[:n])
		t.row.look(ref[:n], t.fill)
		ref, eng = ref[n:], eng[n:]
		if t.at += n; t.at < t.width {
			return
		}
		t.Rows++
		ref, eng := t.ref.argmax(), t.eng.argmax()
		silent := ref == eng && (ref < 0 || !t.row.differs)
		if !silent {
			t.classes.add(float64(ref), float64(eng))
		}
		if ref == eng {
			t.agreed++
			if silent {
				t.silent++
			}
			if t.agreed == t.Rows {
				t.prefix++
			}
		}
		t.at, t.ref, t.eng, t.row = 0, newPeak(), newPeak(), ranked{}
	}
}

// ranked is what a row of the reference has to rank: two or more values that differ and are no fill values. A row with
// a single value throughout, as padding has, or with one that is allowed beside fill values or infinities, has nothing
// that an engine could get wrong. The reference alone says so: an engine could else make such rows count by a value
// that is next to it.
type ranked struct {
	there, differs bool // there is a value that is no fill value, and another than the first of these
	first          float64
}

// look looks at the next elements of a row, mostly two or three of them.
func (r *ranked) look(ref []float64, fill float64) {
	for i := 0; i < len(ref) && !r.differs; i++ {
		switch v := ref[i]; {
		case r.there && v == r.first || math.Abs(v) >= fill:
		case r.there:
			r.differs = true
		default:
			r.there, r.first = true, v
		}
	}
}

// peak finds the argmax of a row that arrives in pieces.
type peak struct {
	best     float64 // NaN before the first value
	at, next int64
	nan      bool
}

func newPeak() peak { return peak{best: math.NaN(), at: -1} }

func (p *peak) scan(values []float64) {
	best := p.best
	for i, v := range values {
		if v <= best {
			continue
		}
		// Larger, or the first, or a NaN.
		if v != v {
			p.nan = true
			continue
		}
		best, p.at = v, p.next+int64(i)
	}
	p.best = best
	p.next += int64(len(values))
}

func (p *peak) argmax() int64 {
	if p.nan {
		return -1
	}
	return p.at
}
