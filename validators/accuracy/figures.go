package accuracy

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/stats"
)

// Figures are the figures of a metric that is no rate, for the reference model and an engine on the
// same cases.
type Figures struct {
	Metric            Metric
	Seed              uint64        // of the bootstrap
	Reference, Engine Contributions // of the same cases in the same order
	// lost is what each case takes from the figure, times the number of cases: 0 where both sides have the same of it. Nil for what is
	// bounded by its spread: see [jumping].
	lost []float64
}

// Bounded is a figure with its one-sided bounds.
type Bounded struct{ Value, Low, High float64 }

// total adds values in ascending order, so that the order of cases changes no digit.
func total(values []float64) float64 {
	sum := 0.0
	for _, v := range slices.Sorted(slices.Values(values)) {
		sum += v
	}
	return sum
}

func mean(values []float64) float64 { return total(values) / float64(max(len(values), 1)) }

func (f Figures) bounds(c Contributions, level float64) Bounded {
	low, high := stats.RangedMean(c.Each, c.Least, c.Most, level, f.Seed)
	if c.Rare {
		low, high = stats.StringerMean(c.Each, c.Least, c.Most, level)
	}
	return Bounded{mean(c.Each), low, high}
}

// Rarest returns the rarest class of the labels and how many cases have it; none for a metric without classes.
func (f Figures) Rarest() Class { return f.Reference.rarest }

// outer makes bounds of the figure from those of a mean.
func (f Figures) outer(b Bounded) Bounded {
	return Bounded{f.Metric.Figure(b.Value), f.Metric.Figure(b.Low), f.Metric.Figure(b.High)}
}

// Sides returns the figures of the reference model and of the engine; NaN without cases.
func (f Figures) Sides() (reference, engine float64) {
	if len(f.Engine.Each) == 0 {
		return math.NaN(), math.NaN()
	}
	return f.Metric.Figure(mean(f.Reference.Each)), f.Metric.Figure(mean(f.Engine.Each))
}

// Absolute bounds the figure of the engine.
func (f Figures) Absolute(level float64) Bounded {
	b := f.bounds(f.Engine, level)
	if f.lost != nil && !math.IsInf(b.High, 1) { // a share
		b.Low, b.High = max(b.Low, 0), min(b.High, 1)
	}
	return f.outer(b)
}

// Drop bounds by how much the engine is worse than the reference model: the difference of the two
// figures, and for a loss the part by which the engine's is larger, so that 0.01 is 1 % of the
// reference's. A negative drop is a gain.
func (f Figures) Drop(level float64) Bounded {
	if f.lost != nil {
		return f.dropOfCases(level)
	}
	if !f.Metric.Loss {
		return f.bounds(f.paired(func(r, e float64) float64 { return r - e }, 1), level)
	}
	ratio := f.ratio(level)
	return Bounded{ratio.Value - 1, ratio.Low - 1, ratio.High - 1}
}

// Relative bounds what share of the reference's quality the engine has: its figure over the
// reference's, and for a loss the reverse.
func (f Figures) Relative(level float64) Bounded {
	if f.lost != nil {
		return f.shareOfCases(level)
	}
	r := f.ratio(level)
	if !f.Metric.Loss {
		return r
	}
	inverse := func(v float64) float64 {
		if v <= 0 {
			return math.Inf(1)
		}
		return 1 / v
	}
	return Bounded{inverse(r.Value), inverse(r.High), inverse(r.Low)}
}

// ratio bounds the engine's figure over the reference's. The ratio of means is linearized (Cochran,
// Sampling Techniques, 1977, chapter 6). That of perplexities is the exponential of a difference.
func (f Figures) ratio(level float64) Bounded {
	if f.Metric.log {
		return f.outerOf(f.bounds(f.paired(func(r, e float64) float64 { return e - r }, 1), level), math.Exp)
	}
	base := mean(f.Reference.Each)
	if !(base > 0) || math.IsInf(base, 1) {
		return Bounded{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	ratio := mean(f.Engine.Each) / base
	b := f.bounds(f.paired(func(r, e float64) float64 { return float64(e-float64(ratio*r)) / base }, 1/base), level)
	b = Bounded{ratio, ratio + b.Low, ratio + b.High}
	if f.Metric.outer == nil {
		return b
	}
	return f.outer(b)
}

func (Figures) outerOf(b Bounded, of func(float64) float64) Bounded {
	return Bounded{of(b.Value), of(b.Low), of(b.High)}
}

// paired combines the contributions of both sides to each case. What the result can be follows from
// what both sides can contribute, times scale; of a smooth metric it is what was seen.
func (f Figures) paired(of func(reference, engine float64) float64, scale float64) Contributions {
	c := Contributions{Each: make([]float64, len(f.Engine.Each))}
	for i, e := range f.Engine.Each {
		c.Each[i] = of(f.Reference.Each[i], e)
	}
	c = c.seen()
	if !f.Metric.Smooth { // scores of a program
		most := scale * (max(f.Reference.Most, f.Engine.Most) - min(f.Reference.Least, f.Engine.Least))
		c.Least, c.Most = min(c.Least, -most), max(c.Most, most)
	}
	return c
}

// seen sets what a case can contribute to what any did.
func (c Contributions) seen() Contributions {
	if len(c.Each) > 0 {
		c.Least, c.Most = slices.Min(c.Each), slices.Max(c.Each)
	}
	return c
}

// Accuracy returns the figures as a report has them.
func (f Figures) Accuracy() evidence.Accuracy {
	reference, engine := f.Sides()
	drop := reference - engine
	if f.Metric.Loss {
		drop = engine/reference - 1
	}
	cases := len(f.Engine.Each)
	return evidence.Accuracy{Metric: f.Metric.Name, Reference: evidence.Figure(reference), Engine: evidence.Figure(engine),
		Drop: evidence.Figure(drop), Cases: cases, Count: cases, Seed: f.Seed}
}
