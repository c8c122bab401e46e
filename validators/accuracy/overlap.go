package accuracy

import (
	"math"

	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	maxPlaces  = 1 << 40 // of a case, so that sums of them are exact
	maxClasses = 1 << 22 // each of a case, of all cases: 128 MiB for each side
)

// shared is what a case has of one class: places where label and answer are the class, where the label is, and where the answer is.
type shared struct {
	class                    int32
	hits, labelled, answered int64
}

// union is the number of places where label or answer is the class.
func (s shared) union() float64 { return float64(s.labelled + s.answered - s.hits) }

// overlap is the mean intersection over union of the classes that have labels: hits over places where label or answer is the class.
// An answer that no label has counts against the class that was the label there.
type overlap struct {
	classes []shared
	first   []int   // of each case: its first class
	places  []int64 // of each case: labels
}

func (o *overlap) add(output, labels tensor.Tensor) error {
	if output.DType.Class() == tensor.ClassFloat {
		return eachRanked(output, labels, func(rows [][]float64, classes []int) error {
			answers := make([]int, len(rows))
			for i, row := range rows {
				answers[i] = tensor.Argmax(row)
			}
			return o.count(answers, classes)
		})
	}
	if labels.DType.Class() == tensor.ClassFloat {
		return mismatchf("labels are %s: want integers, the numbers of classes", labels.DType)
	}
	return eachCase(output, labels, func(got, want []float64) error {
		answers, classes := make([]int, len(got)), make([]int, len(want))
		for i := range got {
			if got[i] > math.MaxInt32 || want[i] > math.MaxInt32 {
				return mismatchf("class %v, label %v: want numbers of classes", got[i], want[i])
			}
			answers[i], classes[i] = int(max(got[i], -1)), int(want[i])
		}
		return o.count(answers, classes)
	})
}

// count adds a case. A negative answer is none.
func (o *overlap) count(answers, labels []int) error {
	at := make(map[int]int) // class to index
	o.first, o.places = append(o.first, len(o.classes)), append(o.places, int64(len(labels)))
	of := func(class int) *shared {
		i, known := at[class]
		if !known {
			i = len(o.classes)
			at[class] = i
			o.classes = append(o.classes, shared{class: int32(class)})
		}
		return &o.classes[i]
	}
	for i, label := range labels {
		of(label).labelled++
		if answers[i] >= 0 {
			of(answers[i]).answered++
		}
		if answers[i] == label {
			of(label).hits++
		}
	}
	if len(o.classes) > maxClasses {
		return mismatchf("more than %d classes in the cases together: miou cannot be computed of so many; use fewer cases", maxClasses)
	}
	return nil
}

// of returns the classes of a case.
func (o *overlap) of(n int) []shared { return ofCase(o.classes, o.first, n) }

func (o *overlap) size() int { return len(o.first) }

// columns are "entries", the number of classes of each case, and of each of these "class", "hits", "labelled" and "answered".
func (o *overlap) columns() Columns {
	entries := make([]int64, len(o.first))
	for i := range entries {
		entries[i] = int64(len(o.of(i)))
	}
	n := len(o.classes)
	class, hits, labelled, answered := make([]int32, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, s := range o.classes {
		class[i], hits[i], labelled[i], answered[i] = s.class, s.hits, s.labelled, s.answered
	}
	return Columns{"entries": column(entries), "class": column(class),
		"hits": column(hits), "labelled": column(labelled), "answered": column(answered)}
}

func (o *overlap) restore(r *reading) {
	entries, all := r.entries("entries", maxClasses)
	class, hits := readColumn[int32](r, "class", all), readColumn[int64](r, "hits", all)
	labelled, answered := readColumn[int64](r, "labelled", all), readColumn[int64](r, "answered", all)
	if r.err != nil {
		return
	}
	for i, n := range entries {
		o.first = append(o.first, len(o.classes))
		var places, answers int64
		known := make(map[int32]bool, n)
		for range n {
			at := len(o.classes)
			s := shared{class[at], hits[at], labelled[at], answered[at]}
			if !s.possible() || known[s.class] {
				r.fail("columns %sclass, hits, labelled and answered: entry %d is of class %d with %d hits of %d labels and %d answers, which cannot be",
					r.prefix, at, s.class, s.hits, s.labelled, s.answered)
				return
			}
			known[s.class] = true
			places, answers = min(places+s.labelled, maxPlaces+1), min(answers+s.answered, maxPlaces+1)
			o.classes = append(o.classes, s)
		}
		if places < 1 || places > maxPlaces || answers > places {
			r.fail("columns %slabelled and answered: case %d has %d labels and %d answers, which cannot be", r.prefix, i, places, answers)
			return
		}
		o.places = append(o.places, places)
	}
}

// possible reports whether there can be such numbers of places.
func (s shared) possible() bool {
	most := int64(maxPlaces)
	return s.class >= 0 && s.hits >= 0 && s.hits <= min(s.labelled, s.answered) && s.labelled <= most && s.answered <= most && s.labelled+s.answered > 0
}

// sums are what some cases have of each class.
type sums struct {
	of       map[int32]shared
	labelled []int32 // the classes that have labels in any of them
	rarest   Class   // of these
}

func (t sums) share(class int32) float64 { return float64(t.of[class].hits) / t.of[class].union() }

func (o *overlap) totals(of []int) sums {
	t := sums{of: make(map[int32]shared)}
	cases := make(map[int32]int) // with labels of the class
	var order []int32
	for _, n := range of {
		for _, s := range o.of(n) {
			sum, known := t.of[s.class]
			if !known {
				order = append(order, s.class)
			}
			cases[s.class] += one(s.labelled > 0)
			t.of[s.class] = shared{s.class, sum.hits + s.hits, sum.labelled + s.labelled, sum.answered + s.answered}
		}
	}
	for _, class := range order {
		if cases[class] > 0 {
			t.labelled = append(t.labelled, class)
			t.rarest = t.rarest.rarer(Class{int(class), cases[class]})
		}
	}
	return t
}

func (o *overlap) contributions(of []int) Contributions {
	t := o.totals(of)
	each := make([]float64, 0, len(t.labelled))
	for _, class := range t.labelled {
		each = append(each, t.share(class))
	}
	miou, weight := mean(each), float64(len(of))/float64(max(len(t.labelled), 1))
	out := Contributions{Each: make([]float64, len(of)), Rare: t.rarest.Cases < rareCases, rarest: t.rarest}
	var most int64 // places of a case
	for i, n := range of {
		out.Each[i] = miou
		most = max(most, o.places[n])
		right := 0.0 // what hits are worth: each place is missed, and answers another class
		for _, s := range o.of(n) {
			if total := t.of[s.class]; total.labelled > 0 {
				share := t.share(s.class)
				out.Each[i] += float64(weight * (float64(s.hits) - float64(share*s.union())) / total.union())
				right += float64(s.hits) * (1 + share) / total.union()
			}
		}
		out.weight = max(out.weight, float64(weight*right))
	}
	worst, best := 0.0, 0.0 // what one place can change
	for _, class := range t.labelled {
		worst = max(worst, weight*t.share(class)/t.of[class].union())
		best = max(best, weight*(1-t.share(class))/t.of[class].union())
	}
	seen := out.seen()
	out.Least = min(seen.Least, miou-2*worst*float64(most)) // the class that is right, and the one that is answered
	out.Most = max(seen.Most, miou+best*float64(most))
	return out
}
