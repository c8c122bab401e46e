package accuracy

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxMarks bounds the labels of all cases: 144 MiB for each side.
const maxMarks = 1 << 24

// rankings is the mean AUC of several labels, each of which is a yes or no of its own: those that have both among the cases.
type rankings struct {
	of []ranking // of each label, all with the same cases
}

func (r *rankings) add(output, labels tensor.Tensor) error {
	return eachCase(output, labels, func(scores, marks []float64) error {
		if r.of == nil {
			r.of = make([]ranking, len(scores))
		}
		if len(r.of) != len(scores) {
			return mismatchf("a case with %d labels, and others with %d: auc_macro wants as many of each", len(scores), len(r.of))
		}
		for i, mark := range marks {
			if mark != 0 && mark != 1 {
				return mismatchf("label %v: auc_macro wants 0 or 1", mark)
			}
			r.of[i].rank(scores[i], mark == 1)
		}
		if r.size()*len(r.of) > maxMarks {
			return registry.Errorf(registry.CodeInvalid, "more than %d labels: auc_macro cannot be computed of so many; use fewer cases", maxMarks)
		}
		return nil
	})
}

func (r *rankings) size() int {
	if len(r.of) == 0 {
		return 0
	}
	return r.of[0].size()
}

// columns are "labels", the number of those of each case, and the "score" and the "label" of each, case by case.
func (r *rankings) columns() Columns {
	each, cases := len(r.of), r.size()
	scores, marks := make([]float64, 0, each*cases), make([]bool, 0, each*cases)
	for n := range cases {
		for _, of := range r.of {
			scores, marks = append(scores, of.scores[n]), append(marks, of.positive[n])
		}
	}
	return Columns{"labels": column(slices.Repeat([]int64{int64(each)}, cases)), "score": column(scores), "label": column(marks)}
}

func (r *rankings) restore(from *reading) {
	each, all := from.entries("labels", maxMarks)
	scores, marks := readColumn[float64](from, "score", all), readColumn[bool](from, "label", all)
	if from.err != nil {
		return
	}
	r.of = make([]ranking, each[0])
	for i, n := range each {
		if n < 1 || n != each[0] {
			from.fail("column %slabels: case %d has %d, want as many as the first case and at least one", from.prefix, i, n)
			return
		}
		for l := range r.of {
			if math.IsNaN(scores[0]) {
				from.fail("column %sscore has a NaN: want one as infinite, on the wrong side", from.prefix)
				return
			}
			r.of[l].rank(scores[0], marks[0])
			scores, marks = scores[1:], marks[1:]
		}
	}
}

func (r *rankings) contributions(of []int) Contributions {
	out, labels := Contributions{Each: make([]float64, len(of))}, 0.0
	for l, label := range r.of {
		if !label.hasBoth(of) {
			continue
		}
		labels++
		c := label.contributions(of)
		for i, v := range c.Each {
			out.Each[i] += v
		}
		out.Least, out.Most, out.Rare = out.Least+c.Least, out.Most+c.Most, out.Rare || c.Rare
		out.weight += c.weight
		out.rarest = out.rarest.rarer(Class{l, c.rarest.Cases})
	}
	if labels == 0 {
		return Contributions{Each: slices.Repeat([]float64{math.NaN()}, len(of))}.seen()
	}
	for i := range out.Each {
		out.Each[i] /= labels
	}
	out.Least, out.Most, out.weight = out.Least/labels, out.Most/labels, out.weight/labels
	return out
}
