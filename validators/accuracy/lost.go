package accuracy

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/validators/stats"
)

// jumping is the side of a metric whose figure jumps with an answer. What few cases show of it says little of others, so the drop is
// bounded as that of a rate is: by the cases that differ, and by what an unseen one can do.
type jumping interface {
	side
	// lost returns what each of some cases takes from the figure of an engine, times their number: 0 for a case in which both sides
	// have the same. It is nil where the figure does not jump.
	lost(of []int, engine side, f Figures) []float64
}

// dropOfCases bounds the drop by what the cases that differ take and give: see [stats.PairedLoss]. An unseen case takes at most what the
// case with the most weight has, or what one did that was seen. The bounds are those of a figure from 0 to 1.
func (f Figures) dropOfCases(level float64) Bounded {
	reference, engine := f.Sides()
	b := Bounded{reference - engine, math.Inf(-1), math.Inf(1)}
	n := len(f.lost)
	if n < rareCases || math.IsNaN(b.Value) {
		return b
	}
	weight := f.Reference.weight
	var taken, given, credited []float64
	most, best := weight, weight
	for _, v := range f.lost {
		switch {
		case v > 0:
			taken, most = append(taken, v), max(most, v)
		case v < 0:
			given, credited, best = append(given, -v), append(credited, min(-v, weight)), max(best, -v)
		}
	}
	loss, gain, credit := total(taken), total(given), total(credited)
	// What belongs to no single case, such as another number of classes.
	switch rest := b.Value*float64(n) - (loss - gain); {
	case rest > 1e-9:
		loss, most = loss+rest, max(most, rest)
	case rest < -1e-9:
		gain, best = gain-rest, max(best, -rest)
	}
	b.High = min(stats.PairedLoss(loss, credit, most, n, level), reference)
	b.Low = max(-stats.PairedLoss(gain, loss, max(best, most), n, level), reference-1)
	// A pass does not rest on the lower bound. So where many cases differ, their spread may say that the engine loses too much.
	if len(taken)+len(given) < 20 || b.Value <= 0 {
		return b
	}
	paired := f.paired(func(r, e float64) float64 { return r - e }, 1)
	paired.Rare = f.Reference.Rare || f.Engine.Rare
	b.Low = max(b.Low, min(f.bounds(paired, level).Low, b.Value))
	return b
}

// shareOfCases bounds the share of the reference's figure that the engine has, by the bounds of the drop.
func (f Figures) shareOfCases(level float64) Bounded {
	reference, engine := f.Sides()
	if !(reference > 0) {
		return Bounded{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	drop := f.dropOfCases(level)
	return Bounded{engine / reference, 1 - drop.High/reference, 1 - drop.Low/reference}
}

// CasesFor returns about how many cases of the rarest class, and without classes of all, prove a drop if none differs and there are as many of
// the others for each; 0 where no number does.
func (f Figures) CasesFor(drop, level float64) int {
	weight, cases := f.Reference.weight, len(f.Reference.Each)
	if f.lost == nil || !(drop > 0) || !(weight > 0) || cases == 0 {
		return 0
	}
	need := stats.CasesFor(drop/weight, 1-(1-level)/2)
	if rarest := f.Reference.rarest.Cases; rarest > 0 {
		return int(math.Ceil(float64(rarest) * float64(need) / float64(cases)))
	}
	return need
}

// Same reports whether no case differs in what the figure is made of.
func (f Figures) Same() bool {
	reference, engine := f.Sides()
	return reference == engine && slices.Equal(f.Reference.Each, f.Engine.Each)
}

// lostOfEach is what each case takes of a figure that is the mean of what cases have.
func lostOfEach(f Figures) []float64 {
	lost := make([]float64, len(f.Engine.Each))
	for i, r := range f.Reference.Each {
		lost[i] = r - f.Engine.Each[i]
	}
	return lost
}

func (*prefix) lost(_ []int, _ side, f Figures) []float64 { return lostOfEach(f) }

// lost is that of scores from 0 to 1, as shares are. Nothing is known of others.
func (s *scores) lost(of []int, engine side, f Figures) []float64 {
	e, ok := engine.(*scores)
	outside := func(v float64) bool { return !(v >= 0 && v <= 1) }
	if !ok || s.loss || slices.ContainsFunc(pick(s.cases, of), outside) || slices.ContainsFunc(pick(e.cases, of), outside) {
		return nil
	}
	return lostOfEach(f)
}

// lost follows from F1 = 2*hits/all of a class: that of the reference less that of the engine is what hits and errors differ by, each times
// what it is worth, over what the engine has of the class.
func (c *confusion) lost(of []int, engine side, _ Figures) []float64 {
	e, ok := engine.(*confusion)
	if !ok {
		return nil
	}
	ours, theirs := c.tallies(of), e.tallies(of)
	scale := float64(len(of)) / float64(max(len(theirs.of), 1))
	lost := make([]float64, len(of))
	for i, n := range of {
		change := make(map[int32]tally)
		for _, event := range c.of(n) {
			change[event.class] = change[event.class].with(event, 1)
		}
		for _, event := range e.of(n) {
			change[event.class] = change[event.class].with(event, -1)
		}
		values := make([]float64, 0, len(change))
		for class, d := range change {
			if t := theirs.of[class]; t.all > 0 {
				values = append(values, scale*(2*d.hits-float64(ours.of[class].f1()*d.all))/t.all)
			}
		}
		lost[i] = total(values)
	}
	return lost
}

// lost follows from hits over union of a class, as that of F1 does.
func (o *overlap) lost(of []int, engine side, _ Figures) []float64 {
	e, ok := engine.(*overlap)
	if !ok {
		return nil
	}
	ours, theirs := o.totals(of), e.totals(of)
	scale := float64(len(of)) / float64(max(len(theirs.labelled), 1))
	lost := make([]float64, len(of))
	for i, n := range of {
		change := make(map[int32][2]float64) // of hits, and of union
		for _, s := range o.of(n) {
			change[s.class] = [2]float64{float64(s.hits), s.union()}
		}
		for _, s := range e.of(n) {
			d := change[s.class]
			change[s.class] = [2]float64{d[0] - float64(s.hits), d[1] - s.union()}
		}
		values := make([]float64, 0, len(change))
		for class, d := range change {
			if t := theirs.of[class]; t.labelled > 0 {
				values = append(values, scale*(d[0]-float64(ours.share(class)*d[1]))/t.union())
			}
		}
		lost[i] = total(values)
	}
	return lost
}

// lost shares out each pair of a case of class 1 and one of class 0 that changes its order, half to each.
func (r *ranking) lost(of []int, engine side, _ Figures) []float64 {
	e, ok := engine.(*ranking)
	if !ok {
		return nil
	}
	ours, theirs := r.place(of), e.place(of)
	lost := make([]float64, len(of))
	for i := range lost {
		lost[i] = float64((ours.each[i] - theirs.each[i]) * ours.scale(i) / 2)
	}
	return lost
}

func (r *rankings) lost(of []int, engine side, f Figures) []float64 {
	e, ok := engine.(*rankings)
	if !ok || len(e.of) != len(r.of) {
		return nil
	}
	lost, labels := make([]float64, len(of)), 0.0
	for l := range r.of {
		if !r.of[l].hasBoth(of) {
			continue
		}
		labels++
		for i, v := range r.of[l].lost(of, &e.of[l], f) {
			lost[i] += v
		}
	}
	for i := range lost {
		lost[i] /= labels
	}
	return lost
}

// lost is the difference of what both sides have of the cases in which they found something else. What is left is that of the levels of
// recall, which belongs to no case.
func (d *detection) lost(of []int, engine side, f Figures) []float64 {
	e, ok := engine.(*detection)
	if !ok {
		return nil
	}
	lost := lostOfEach(f)
	for i, n := range of {
		ours, _ := d.of(n)
		theirs, _ := e.of(n)
		if slices.Equal(ours, theirs) {
			lost[i] = 0
		}
	}
	return lost
}
