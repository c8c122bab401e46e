package tensor

import (
	"math"
	"slices"
)

// maxClasses is how many classes are told apart. All others, such as most tokens, are one class together, OtherClasses.
const maxClasses = 256

// OtherClasses is the class of all answers that are not told apart.
const OtherClasses = maxClasses

// ClassCases counts the cases that have a class: in which the reference answers it at any place.
type ClassCases struct {
	Class int // 0 to 255, or OtherClasses
	Cases int
	// Lost are, of these, cases in which the engine answers it at fewer than half of these places, or at more others than there are of these.
	Lost int
}

// evidence is how much more than half of the cases lose the class, in standard deviations of as many fair coins.
func (c ClassCases) evidence() float64 {
	return float64(2*c.Lost-c.Cases) / math.Sqrt(float64(max(c.Cases, 1)))
}

// WorstClass returns the class that is most clearly lost in more than half of its cases, the lowest of several; false without classes.
func (r Result) WorstClass() (worst ClassCases, ok bool) {
	for _, c := range r.Classes {
		if !ok || c.evidence() > worst.evidence() {
			worst, ok = c, true
		}
	}
	return worst, ok
}

// answered counts the places of one case by their class: by the reference, of these the ones with the same answer of the engine, and others with
// that answer.
type answered struct{ places, kept, more [maxClasses + 1]int32 }

// add adds one place, by the answers of both sides.
func (a *answered) add(reference, engine float64) {
	if a == nil {
		return
	}
	class := classOf(reference)
	a.places[class]++
	if reference == engine || reference != reference && engine != engine {
		a.kept[class]++
	} else if other := classOf(engine); other != class {
		a.more[other]++
	}
}

// classOf returns the class of an answer.
func classOf(answer float64) int {
	if answer >= 0 && answer < maxClasses {
		return int(answer)
	}
	return OtherClasses
}

// classCounts counts cases by class.
type classCounts struct{ cases, lost [maxClasses + 1]int }

// end adds a case.
func (c *classCounts) end(of *answered) {
	if of == nil {
		return
	}
	for class, places := range of.places {
		if places == 0 {
			continue
		}
		c.cases[class]++
		if 2*of.kept[class] < places || of.more[class] > places {
			c.lost[class]++
		}
	}
}

// list returns the classes that a case has.
func (c *classCounts) list() (all []ClassCases) {
	for class, cases := range c.cases {
		if cases > 0 {
			all = append(all, ClassCases{class, cases, c.lost[class]})
		}
	}
	return all
}

// classesLast returns a tensor with the axis of its classes, counted from the last one, moved behind the others.
func classesLast(t Tensor, fromLast int) Tensor {
	axis := len(t.Shape) - 1 - fromLast
	if fromLast <= 0 || axis < 0 || t.Len() == 0 {
		return t
	}
	before, classes, behind := 1, int(t.Shape[axis]), 1
	for i, d := range t.Shape {
		switch {
		case i < axis:
			before *= int(d)
		case i > axis:
			behind *= int(d)
		}
	}
	size := t.DType.Size()
	data := make([]byte, len(t.Data))
	for b := range before {
		for c := range classes {
			from := (b*classes + c) * behind
			for p := range behind {
				to := (b*behind+p)*classes + c
				copy(data[to*size:(to+1)*size], t.Data[(from+p)*size:(from+p+1)*size])
			}
		}
	}
	shape := append(slices.Delete(slices.Clone(t.Shape), axis, axis+1), int64(classes))
	return Tensor{DType: t.DType, Shape: shape, Data: data}
}

// classesBack moves the last index back to the axis of the classes.
func classesBack(index []int64, fromLast int) []int64 {
	axis := len(index) - 1 - fromLast
	if fromLast <= 0 || axis < 0 {
		return index
	}
	last := index[len(index)-1]
	return slices.Insert(slices.Clone(index[:len(index)-1]), axis, last)
}
