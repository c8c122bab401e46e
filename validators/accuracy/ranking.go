package accuracy

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// ranking is AUC, the area under the ROC curve: the chance that a case of class 1 has a higher score
// than one of class 0, where a tie counts half. A NaN is always on the wrong side. The contributions
// are those of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988).
type ranking struct {
	scores   []float64
	positive []bool
}

func (r *ranking) add(output, labels tensor.Tensor) error {
	if err := validate(output, labels); err != nil {
		return err
	}
	cases := max(labels.Shape[0], 1)
	width := int64(output.Len()) / cases
	if width < 1 || width > 2 || int64(labels.Len()) != labels.Shape[0] {
		return mismatchf("labels have shape %v, outputs %v: auc wants one label for each case, and one score or two", labels.Shape, output.Shape)
	}
	scores := output.Float64s()
	for i, label := range labels.Float64s() {
		if label != 0 && label != 1 {
			return mismatchf("label %v of case %d: auc wants 0 or 1", label, i)
		}
		score := scores[int64(i)*width]
		if width == 2 {
			score = scores[2*i+1] - score
		}
		r.rank(score, label == 1)
	}
	return nil
}

// rank adds a case.
func (r *ranking) rank(score float64, positive bool) {
	switch {
	case math.IsNaN(score) && positive:
		score = math.Inf(-1)
	case math.IsNaN(score):
		score = math.Inf(1)
	}
	r.scores, r.positive = append(r.scores, score), append(r.positive, positive)
}

func (r *ranking) size() int { return len(r.scores) }

func (r *ranking) columns() Columns {
	return Columns{"score": column(r.scores), "label": column(r.positive)}
}

func (r *ranking) restore(from *reading) {
	r.scores, r.positive = from.floats("score"), readColumn[bool](from, "label", from.cases)
	if slices.ContainsFunc(r.scores, math.IsNaN) {
		from.fail("column %sscore has a NaN: want one as infinite, on the wrong side", from.prefix)
	}
}

func (r *ranking) contributions(of []int) Contributions {
	scores, positive := pick(r.scores, of), pick(r.positive, of)
	order := make([]int, len(of))
	positives := 0
	for i := range of {
		order[i] = i
		positives += one(positive[i])
	}
	n, negatives := float64(len(of)), len(of)-positives
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case scores[a] < scores[b]:
			return -1
		case scores[a] > scores[b]:
			return 1
		}
		return 0
	})
	// The share of the other class that is on the right side of each case.
	placed := make([]float64, len(of))
	area, below := 0.0, [2]float64{} // cases of each class with a lower score
	for from := 0; from < len(order); {
		to := from
		var tied [2]float64
		for ; to < len(order) && scores[order[to]] == scores[order[from]]; to++ {
			tied[one(positive[order[to]])]++
		}
		for _, i := range order[from:to] {
			if positive[i] {
				placed[i] = (below[0] + tied[0]/2) / float64(negatives)
			} else {
				placed[i] = (float64(positives) - below[1] - tied[1]/2) / float64(positives)
			}
		}
		area += tied[1] * (below[0] + tied[0]/2)
		below[0], below[1] = below[0]+tied[0], below[1]+tied[1]
		from = to
	}
	area /= float64(positives) * float64(negatives) // NaN without one of both classes
	scale := func(p bool) float64 {
		if p {
			return n / float64(positives)
		}
		return n / float64(negatives)
	}
	for i, p := range placed {
		placed[i] = area + float64((p-area)*scale(positive[i]))
	}
	most := max(scale(true), scale(false))
	return Contributions{Each: placed, Least: area - area*most, Most: area + (1-area)*most, Rare: min(positives, negatives) < rareCases}
}

// DropOfSameOrder returns the least drop of AUC that cases can prove of an engine that puts them in the order of the
// reference: see [stats.RangedMean]. A case of the rarer class counts for as many as there are cases for each of these.
func DropOfSameOrder(rarer, cases int, level float64) float64 {
	return float64(cases) / float64(rarer) * stats.UpperRate(0, cases, 1-(1-level)/2)
}

// Rarer returns how many cases have the rarer of two labels, for a metric of these; else 0. It follows from how much one case
// can contribute.
func (f Figures) Rarer() int {
	most := f.Reference.Most - f.Reference.Least
	if f.Metric.Name != AUC || !(most > 0) || math.IsInf(most, 1) {
		return 0
	}
	return int(math.Round(float64(len(f.Reference.Each)) / most))
}
