package validators

import (
	"cmp"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// ClassShift says of the cases with one label where an engine and its reference model answer differently.
type ClassShift struct {
	Class int64
	Cases int
	// Lost is how many only the reference model has right, and Won how many only the engine has. A case with several
	// answers counts by their shares.
	Lost, Won float64
	// Taken are the answers that differ, the most frequent first. Nil where the figures do not have them.
	Taken []Taken
}

// Taken is what an engine answers in place of what its reference model does.
type Taken struct {
	Reference, Engine int64 // classes; -1: no answer
	Cases             int
}

// Shifts counts by class how answers shifted, from the per-case figures of a report and the label of each case. A metric
// that is no rate of right answers has none. Classes are in ascending order. Errors: CodeInvalid for a file that is
// malformed, or about another number of cases.
func Shifts(figures []byte, labels []int64) ([]ClassShift, error) {
	read, err := percase.Read(figures)
	if err != nil {
		return nil, err
	}
	lost, won, ok := read.Answers()
	if !ok {
		return nil, nil
	}
	if len(lost) != len(labels) || len(won) != len(labels) {
		return nil, registry.Errorf(registry.CodeInvalid, "per-case figures of %d cases, and %d labels", len(lost), len(labels))
	}
	reference, engine, said := read.Accuracy.AnsweredClasses()
	said = said && len(reference) == len(labels)
	by, taken := make(map[int64]*ClassShift), make(map[turn]int)
	for i, class := range labels {
		if by[class] == nil {
			by[class] = &ClassShift{Class: class}
		}
		by[class].Cases++
		by[class].Lost += lost[i]
		by[class].Won += won[i]
		if said && reference[i] != engine[i] {
			taken[turn{class, reference[i], engine[i]}]++
		}
	}
	for t, cases := range taken {
		by[t.class].Taken = append(by[t.class].Taken, Taken{int64(t.reference), int64(t.engine), cases})
	}
	var all []ClassShift
	for _, s := range by {
		slices.SortFunc(s.Taken, func(a, b Taken) int {
			return cmp.Or(cmp.Compare(b.Cases, a.Cases), cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Engine, b.Engine))
		})
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b ClassShift) int { return int(a.Class - b.Class) })
	return all, nil
}

// turn is what an engine answers to a case of a class, in place of what its reference model does.
type turn struct {
	class             int64
	reference, engine int32
}

// ClassLabels returns the label of each case, if every case has one integer as its label.
func ClassLabels(labels tensor.Tensor) ([]int64, bool) {
	flat := len(labels.Shape) == 1 || len(labels.Shape) == 2 && labels.Shape[1] == 1
	if !flat || labels.DType != tensor.Int64 && labels.DType != tensor.Int32 && labels.DType != tensor.Uint8 {
		return nil, false
	}
	out := make([]int64, labels.Len())
	for i := range out {
		out[i] = int64(labels.Float64(i))
	}
	return out, true
}
