package accuracy

import (
	"math"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// errorsOf has one number for each case: the mean of a function of each value and its label.
type errorsOf struct {
	each   func(got, want float64) float64
	column string
	cases  []float64
	// relative refuses labels of 0.
	relative bool
}

func (e *errorsOf) add(output, labels tensor.Tensor) error {
	return eachCase(output, labels, func(got, want []float64) error {
		sum := 0.0
		for i, v := range got {
			if e.relative && want[i] == 0 {
				return mismatchf("a label is 0, and has no relative error: use mae or rmse")
			}
			sum += float64(e.each(v, want[i]))
		}
		e.cases = append(e.cases, sum/float64(len(got)))
		return nil
	})
}

func (e *errorsOf) size() int { return len(e.cases) }

func (e *errorsOf) columns() Columns { return Columns{e.column: column(e.cases)} }

func (e *errorsOf) restore(r *reading) { e.cases = r.floats(e.column) }

func (e *errorsOf) contributions(of []int) Contributions {
	return Contributions{Each: pick(e.cases, of)}.seen()
}

func pick[T any](from []T, of []int) []T {
	out := make([]T, len(of))
	for i, c := range of {
		out[i] = from[c]
	}
	return out
}

// explained is R2, the share of the labels' variance that the outputs explain: 1 less the sum of
// the squared errors over that of the squared deviations of the labels from their mean.
type explained struct{ values, labels []float64 }

func (x *explained) add(output, labels tensor.Tensor) error {
	return eachCase(output, labels, func(got, want []float64) error {
		if len(got) != 1 {
			return mismatchf("a case has %d numbers: r2 wants one; use rmse or mae", len(got))
		}
		x.values, x.labels = append(x.values, got[0]), append(x.labels, want[0])
		return nil
	})
}

func (x *explained) size() int { return len(x.labels) }

func (x *explained) columns() Columns {
	return Columns{"value": column(x.values), "label": column(x.labels)}
}

func (x *explained) restore(r *reading) { x.values, x.labels = r.floats("value"), r.floats("label") }

func (x *explained) contributions(of []int) Contributions {
	squared, deviations := pick(x.values, of), pick(x.labels, of)
	for i, y := range deviations {
		squared[i] = float64((squared[i] - y) * (squared[i] - y))
	}
	center := mean(deviations)
	for i, y := range deviations {
		deviations[i] = float64((y - center) * (y - center))
	}
	unexplained, total := mean(squared), mean(deviations)
	rest := unexplained / total // NaN or infinite where all labels are equal
	for i, s := range squared {
		squared[i] = 1 - rest - float64(s-float64(rest*deviations[i]))/total
	}
	return Contributions{Each: squared}.seen()
}

// likelihood has the negative log likelihood that the outputs give to the labels: perplexity is the
// exponential of its mean over the labels of all cases.
type likelihood struct {
	probability bool
	sums        []float64 // of the labels of each case
	counts      []float64
}

func (l *likelihood) add(output, labels tensor.Tensor) error {
	return eachRanked(output, labels, func(rows [][]float64, classes []int) error {
		sum := 0.0
		for i, row := range rows {
			surprise, err := l.surprise(row, classes[i])
			if err != nil {
				return err
			}
			sum += surprise
		}
		l.sums, l.counts = append(l.sums, sum), append(l.counts, float64(len(rows)))
		return nil
	})
}

// aboveOne is by how much a probability may be above 1, as one of few digits can be.
const aboveOne = 1e-3

// surprise is minus the logarithm of the probability of a class; NaN in a row gives NaN.
func (l *likelihood) surprise(row []float64, class int) (float64, error) {
	if l.probability {
		return probable(row, class)
	}
	most := math.Inf(-1)
	for _, v := range row {
		most = math.Max(most, v) // NaN stays
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(v - most)
	}
	return math.Log(sum) + most - row[class], nil
}

// probable is the surprise of a class in a row of probabilities.
func probable(row []float64, class int) (float64, error) {
	surprise := -math.Log(row[class])
	for _, v := range row {
		switch {
		case v < 0 || v > 1+aboveOne:
			return 0, mismatchf("value %v is no probability; say kind: scores", v)
		case math.IsNaN(v):
			surprise = v
		}
	}
	return surprise, nil
}

func (l *likelihood) size() int { return len(l.sums) }

func (l *likelihood) columns() Columns {
	return Columns{"surprise": column(l.sums), "labels": column(l.counts)}
}

func (l *likelihood) restore(r *reading) {
	l.sums, l.counts = r.floats("surprise"), r.floats("labels")
}

func (l *likelihood) contributions(of []int) Contributions {
	sums, counts := pick(l.sums, of), pick(l.counts, of)
	each := mean(counts)
	rate := mean(sums) / each
	for i, s := range sums {
		sums[i] = rate + float64(s-float64(rate*counts[i]))/each
	}
	return Contributions{Each: sums}.seen()
}
