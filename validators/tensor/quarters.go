package tensor

import (
	"math"
	"slices"
)

// The values of an output are of many magnitudes if all are above 0 and nine tenths of them span this factor or more. The spread of such
// values is that of the few large ones, beside which any error of the small ones is small. Values up to 1 can be probabilities, of which
// the small ones need no relative precision.
const manyMagnitudes = 10

const (
	// quarterValues is how many values an output or a channel has at least that is divided into quarters.
	quarterValues = 40
	// maxQuarterValues is how many values are kept to divide them. An output with more is not divided.
	maxQuarterValues = 1 << 20
)

// biasWeight is how much more an error counts that all values of a quarter have in common, such as that of a wrong scale.
const biasWeight = 4

// Quarter is a quarter of the reference's values, by their size.
type Quarter struct {
	From, To float64 // of the reference's values
	Relative float64 // mean of |engine-reference| / reference
	// Error is the root mean square error divided by the spread of the quarter: the standard deviation of its values, or half of their mean
	// if that is more. It is biasWeight times the mean error over the mean of the values, if that is more.
	Error float64
}

// Quarters are the errors by the size of the reference's values.
type Quarters struct {
	Channel int // the index along the last axis that has the largest error in a quarter; -1: all values together
	All     [4]Quarter
}

// Worst returns the quarter with the largest error.
func (q Quarters) Worst() Quarter {
	return slices.MaxFunc(q.All[:], func(a, b Quarter) int { return compareNaNLast(a.Error, b.Error) })
}

// compareNaNLast orders NaN behind all numbers.
func compareNaNLast(a, b float64) int {
	switch {
	case a != a && b == b, a > b:
		return 1
	case b != b && a == a, a < b:
		return -1
	}
	return 0
}

// valuePair is a value of both sides.
type valuePair struct{ reference, engine float64 }

// pairsBySize keeps the values of an output by channel.
type pairsBySize struct {
	channels [][]valuePair
	kept     int
	off      bool // there is no use in dividing them
}

// feed keeps values of a case, from one of them on. All cases have the same number of channels.
func (m *pairsBySize) feed(ref, eng []float64, at, channels int) {
	switch {
	case m.off:
		return
	case m.channels == nil:
		m.channels = make([][]valuePair, channels)
	}
	if m.kept += len(ref); m.kept > maxQuarterValues || len(m.channels) != channels {
		m.off, m.channels = true, nil
		return
	}
	for i, r := range ref {
		to := &m.channels[(at+i)%channels]
		*to = append(*to, valuePair{r, eng[i]})
	}
}

// quarters returns the quarters of the channel with the largest error in one; nil if a channel does not have values of many magnitudes: its
// errors would count in no quarter.
func (m *pairsBySize) quarters() (worst *Quarters) {
	for channel, values := range m.channels {
		of, ok := quartersOf(values)
		if !ok {
			return nil
		}
		if of.Channel = channel; len(m.channels) == 1 {
			of.Channel = -1
		}
		if worst == nil || compareNaNLast(of.Worst().Error, worst.Worst().Error) > 0 {
			worst = &of
		}
	}
	return worst
}

// ManyMagnitudes reports whether values are all above 0, some are above 1, and nine tenths of them span a factor of ten.
func ManyMagnitudes(values []float64) bool {
	pairs := make([]valuePair, len(values))
	for i, v := range values {
		pairs[i] = valuePair{v, v}
	}
	_, ok := quartersOf(pairs)
	return ok
}

// quartersOf divides values; false if there are too few, or they are not of many magnitudes.
func quartersOf(values []valuePair) (q Quarters, ok bool) {
	n := len(values)
	if n < quarterValues {
		return q, false
	}
	values = slices.Clone(values)
	slices.SortFunc(values, func(a, b valuePair) int { return compareNaNLast(a.reference, b.reference) })
	if tail := n / 20; !(values[0].reference > 0 && values[n-1].reference > 1 && values[n-1].reference <= math.MaxFloat64) || !(values[n-1-tail].reference >= manyMagnitudes*values[tail].reference) {
		return q, false
	}
	for i := range q.All {
		q.All[i] = quarterOf(values[i*n/4 : (i+1)*n/4])
	}
	return q, true
}

// quarterOf returns the errors of values in the order of the reference's.
func quarterOf(values []valuePair) Quarter {
	n := float64(len(values))
	q := Quarter{From: values[0].reference, To: values[len(values)-1].reference}
	var from, from2, err, err2 float64
	for _, v := range values {
		d, e := v.reference-q.From, v.engine-v.reference
		from, from2, err, err2 = from+d, from2+d*d, err+e, err2+e*e
		q.Relative += math.Abs(e) / v.reference / n
	}
	mean := q.From + from/n
	spread := max(math.Sqrt(variance(n, from, from2)), mean/2)
	q.Error = max(math.Sqrt(err2/n)/spread, biasWeight*math.Abs(err/n)/mean)
	if q.Error != q.Error { // NaN or infinity on either side
		q.Error, q.Relative = math.Inf(1), math.Inf(1)
	}
	return q
}
