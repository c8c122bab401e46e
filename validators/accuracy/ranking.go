package accuracy

import (
	"cmp"
	"math"
	"slices"

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

// places say of each case which share of the other class it is on the right side of.
type places struct {
	each                 []float64
	positive             []bool
	positives, negatives float64
	area                 float64
}

// scale is how many cases there are for each one of the class of case i.
func (p places) scale(i int) float64 {
	if p.positive[i] {
		return float64(len(p.each)) / p.positives
	}
	return float64(len(p.each)) / p.negatives
}

// hasBoth reports whether both classes are among some cases.
func (r *ranking) hasBoth(of []int) bool {
	positive := pick(r.positive, of)
	return slices.Contains(positive, true) && slices.Contains(positive, false)
}

func (r *ranking) place(of []int) places {
	scores := pick(r.scores, of)
	p := places{each: make([]float64, len(of)), positive: pick(r.positive, of)}
	order := make([]int, len(of))
	for i := range of {
		order[i] = i
		p.positives += float64(one(p.positive[i]))
	}
	p.negatives = float64(len(of)) - p.positives
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	below := [2]float64{} // cases of each class with a lower score
	for from := 0; from < len(order); {
		to := from
		var tied [2]float64
		for ; to < len(order) && scores[order[to]] == scores[order[from]]; to++ {
			tied[one(p.positive[order[to]])]++
		}
		for _, i := range order[from:to] {
			if p.positive[i] {
				p.each[i] = (below[0] + tied[0]/2) / p.negatives
			} else {
				p.each[i] = (p.positives - below[1] - tied[1]/2) / p.positives
			}
		}
		p.area += tied[1] * (below[0] + tied[0]/2)
		below[0], below[1] = below[0]+tied[0], below[1]+tied[1]
		from = to
	}
	p.area /= p.positives * p.negatives // NaN without one of both classes
	return p
}

func (r *ranking) contributions(of []int) Contributions {
	p := r.place(of)
	n, area := float64(len(of)), p.area
	most := max(n/p.positives, n/p.negatives)
	rarest := Class{0, int(p.negatives)}.rarer(Class{1, int(p.positives)})
	out := Contributions{Each: p.each, Least: area - area*most, Most: area + (1-area)*most, Rare: rarest.Cases < rareCases, rarest: rarest}
	for i, share := range p.each {
		weight := float64(share * p.scale(i))
		out.weight = max(out.weight, weight)
		p.each[i] = area + weight - float64(area*p.scale(i))
	}
	return out
}
