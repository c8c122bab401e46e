package tensor

import "slices"

// An engine that always gives one answer equals the reference as often as that answer is there: on
// 97 % of the pixels where 3 % are in the foreground. So a comparison also says how often one such engine is wrong: one with the
// same answer everywhere, and one with an answer for each place of a case.

// maxAnswers is how many answers are counted at least. Of twice as many the rarest are forgotten.
const maxAnswers = 1 << 16

// answers counts the values of a reference, each case as a whole.
type answers struct {
	small  [256]float64 // of 0 to 255
	rest   map[float64]float64
	lost   float64 // what was taken from each of rest
	cases  float64
	places places

	now   caseValue
	whole map[float64]int // by value: cases that have no other
}

// caseValue is the value of a case that has no other.
type caseValue struct {
	begun, mixed bool
	value        float64
}

func (w *caseValue) add(v float64) {
	w.mixed = w.mixed || w.begun && v != w.value
	w.begun, w.value = true, v
}

// end ends a case that counts.
func (a *answers) end() {
	a.cases++
	if a.now.mixed || len(a.whole) >= maxAnswers {
		return
	}
	if a.whole == nil {
		a.whole = make(map[float64]int)
	}
	a.whole[a.now.value]++
}

// otherCases is how many cases have another answer than the most frequent one.
func (a *answers) otherCases() int {
	most, at := 0.0, 0.0
	for v, share := range a.small {
		if share > most {
			most, at = share, float64(v)
		}
	}
	for v, share := range a.rest {
		if share+a.lost > most {
			most, at = share+a.lost, v
		}
	}
	return int(a.cases) - a.whole[at]
}

// begin prepares for a case that is counted.
func (a *answers) begin(shape []int64) {
	a.now = caseValue{}
	a.places.begin(shape)
}

// add adds values of a case of n elements in all, from one of them on.
func (a *answers) add(values []float64, at, n int) {
	a.places.add(values, at)
	share := 1 / float64(n)
	for i := 0; i < len(values); {
		v, from := values[i], i
		for i < len(values) && values[i] == v {
			i++
		}
		a.now.add(v)
		a.count(v, float64(i-from)*share)
	}
}

func (a *answers) count(v, share float64) {
	if v >= 0 && v < float64(len(a.small)) {
		a.small[int(v)] += share
		return
	}
	if a.rest == nil {
		a.rest = make(map[float64]float64)
	}
	if a.rest[v] += share; len(a.rest) >= 2*maxAnswers {
		a.forget()
	}
}

// forget takes from all counts that of the largest which is not kept. So no value that is frequent is ever forgotten, whenever it
// comes: Misra and Gries, Finding repeated elements, 1982.
func (a *answers) forget() {
	counts := make([]float64, 0, len(a.rest))
	for _, share := range a.rest {
		counts = append(counts, share)
	}
	slices.Sort(counts)
	less := counts[len(counts)-maxAnswers-1]
	a.lost += less
	for v, share := range a.rest {
		if a.rest[v] = share - less; share <= less {
			delete(a.rest, v)
		}
	}
}

// others is the sum over the cases of the share of other answers than the most frequent one: of all, or where that is less of
// those at the same place.
func (a *answers) others() float64 {
	most := slices.Max(a.small[:])
	for _, share := range a.rest {
		most = max(most, share+a.lost)
	}
	others := max(a.cases-most, 0)
	if of, known := a.places.others(); known {
		return min(others, of)
	}
	return others
}

// Bounds of what is counted for each place. In fewer cases the most frequent answer of a place is so mostly by chance: that of a
// single case is the case itself.
const (
	maxPlaces    = 1 << 14
	placeAnswers = 16
	placeCases   = 20
)

// places counts the values at each index of a case, while all cases have one shape.
type places struct {
	shape  []int64
	cases  int
	counts []placeCount
	off    bool
}

// placeCount has the most frequent values of a place. Where there are more than placeAnswers it may count too few of a value, by
// at most a sixteenth of how many others there are: see forget.
type placeCount []struct {
	value float64
	cases int
}

func (p *places) begin(shape []int64) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	switch {
	case n == 0 || p.off:
	case p.counts == nil && n <= maxPlaces:
		p.shape, p.counts, p.cases = slices.Clone(shape), make([]placeCount, n), 1
	case slices.Equal(shape, p.shape):
		p.cases++
	default:
		p.off, p.counts = true, nil
	}
}

func (p *places) add(values []float64, at int) {
	if p.off {
		return
	}
	for i, v := range values {
		p.counts[at+i].add(v)
	}
}

// add counts a value: one that has no room takes one from all others.
func (c *placeCount) add(v float64) {
	of := *c
	for i := range of {
		if of[i].value == v {
			of[i].cases++
			return
		}
	}
	if len(of) < placeAnswers {
		*c = append(of, struct {
			value float64
			cases int
		}{v, 1})
		return
	}
	kept := of[:0]
	for _, o := range of {
		if o.cases--; o.cases > 0 {
			kept = append(kept, o)
		}
	}
	*c = kept
}

// others is the sum over the cases of the share of places with another answer than the most frequent one there. It is not known
// where cases differ in shape, have too many places, or are too few.
func (p *places) others() (sum float64, known bool) {
	if p.off || p.cases < placeCases {
		return 0, false
	}
	for _, c := range p.counts {
		most := 0
		for _, of := range c {
			most = max(most, of.cases)
		}
		sum += float64(p.cases - most)
	}
	return sum / float64(len(p.counts)), true
}
