package accuracy

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxEvents bounds the answers that F1 is computed of: 128 MiB for each side.
const maxEvents = 1 << 24

// event is an answer that was right, or missing, or wrong.
type event struct {
	class int32
	hit   bool // else it counts against the class, as a miss or as a false alarm
	label bool // the label is the class: it is a hit or a miss
}

// confusion is F1, the harmonic mean of precision and recall: 2*hits over 2*hits + misses + false
// alarms. binary is that of class 1; else it is the mean over all classes that are among labels or
// answers. It is NaN where no label is of such a class: any engine would be as good as the reference
// model. Integers or booleans of several per case are several answers, each to a class of its own.
type confusion struct {
	binary bool
	multi  bool // several answers per case, each yes or no
	events []event
	first  []int // of each case: its first event
}

func (c *confusion) add(output, labels tensor.Tensor) error {
	if err := validate(output, labels); err != nil {
		return err
	}
	if labels.DType.Class() == tensor.ClassFloat {
		return mismatchf("labels are %s: want integers", labels.DType)
	}
	if output.DType.Class() != tensor.ClassFloat {
		return eachCase(output, labels, c.named)
	}
	return eachRanked(output, labels, func(rows [][]float64, classes []int) error {
		c.begin()
		for i, row := range rows {
			c.answer(tensor.Argmax(row), classes[i])
		}
		return c.full()
	})
}

// named adds a case whose output is the answer: the number of a class, or a yes or no for each.
func (c *confusion) named(got, want []float64) error {
	c.begin()
	if len(got) == 1 {
		if math.Abs(got[0]) > math.MaxInt32 || math.Abs(want[0]) > math.MaxInt32 {
			return mismatchf("class %v, label %v: want numbers of classes", got[0], want[0])
		}
		c.answer(int(got[0]), int(want[0]))
		return c.full()
	}
	c.multi = true
	if i := slices.IndexFunc(want, func(v float64) bool { return v != 0 && v != 1 }); i >= 0 {
		return mismatchf("label %v: f1 takes several numbers for each case as yes or no, 1 or 0; want miou, top1 or exact for numbers of classes", want[i])
	}
	for class, v := range got {
		switch yes, should := v != 0, want[class] != 0; {
		case yes && should:
			c.event(event{int32(class), true, true})
		case yes != should:
			c.event(event{int32(class), false, should})
		}
	}
	return c.full()
}

func (c *confusion) begin() { c.first = append(c.first, len(c.events)) }

// answer adds an answer, which is negative for none.
func (c *confusion) answer(got, want int) {
	if got == want {
		c.event(event{int32(want), true, true})
		return
	}
	c.event(event{int32(want), false, true})
	if got >= 0 {
		c.event(event{int32(got), false, false})
	}
}

func (c *confusion) event(e event) {
	if !c.binary || e.class == 1 {
		c.events = append(c.events, e)
	}
}

func (c *confusion) full() error {
	if len(c.events) > maxEvents {
		return registry.Errorf(registry.CodeInvalid, "more than %d answers: f1 cannot be computed of so many; use fewer cases, or top1", maxEvents)
	}
	return nil
}

// of returns the events of a case.
func (c *confusion) of(n int) []event { return ofCase(c.events, c.first, n) }

// ofCase returns what all cases have of case n, where first says at which index each begins.
func ofCase[T any](all []T, first []int, n int) []T {
	end := len(all)
	if n+1 < len(first) {
		end = first[n+1]
	}
	return all[first[n]:end]
}

// columns are "entries", the number of events of each case, and of each event "class", "hit" and "label".
// "several" is true if cases have several answers, each yes or no.
func (c *confusion) columns() Columns {
	n := len(c.first)
	entries, several := make([]int64, n), make([]bool, n)
	for i := range c.first {
		entries[i], several[i] = int64(len(c.of(i))), c.multi
	}
	class, hit, label := make([]int32, len(c.events)), make([]bool, len(c.events)), make([]bool, len(c.events))
	for i, e := range c.events {
		class[i], hit[i], label[i] = e.class, e.hit, e.label
	}
	return Columns{"entries": column(entries), "several": column(several),
		"class": column(class), "hit": column(hit), "label": column(label)}
}

func (c *confusion) restore(r *reading) {
	entries, all := r.entries("entries", maxEvents)
	several := readColumn[bool](r, "several", r.cases)
	class, hit, label := readColumn[int32](r, "class", all), readColumn[bool](r, "hit", all), readColumn[bool](r, "label", all)
	if r.err != nil {
		return
	}
	c.multi = slices.Contains(several, true)
	for _, n := range entries {
		c.begin()
		for range n {
			at := len(c.events)
			e := event{class[at], hit[at], label[at]}
			if e.hit && !e.label || c.binary && e.class != 1 {
				r.fail("columns %sclass, hit and label: entry %d is of class %d, hit %t, label %t, which cannot be", r.prefix, at, e.class, e.hit, e.label)
				return
			}
			c.events = append(c.events, e)
		}
	}
}

// tally is what one class has: hits, and hits + hits + misses + false alarms.
type tally struct{ hits, all float64 }

func (t tally) f1() float64 { return 2 * t.hits / t.all }

func (e event) size() float64 {
	if e.hit {
		return 2
	}
	return 1
}

func (c *confusion) size() int { return len(c.first) }

// with adds an event some times.
func (t tally) with(e event, times float64) tally {
	t.all += float64(times * e.size())
	if e.hit {
		t.hits += times
	}
	return t
}

// tallies are what some cases have of each class.
type tallies struct {
	of     map[int32]tally
	order  []int32 // as they occur, so that sums are the same in every run
	rarest Class   // of those that are labels
}

func (c *confusion) tallies(of []int) tallies {
	t := tallies{of: make(map[int32]tally)}
	cases := make(map[int32]int) // with labels of the class
	for _, n := range of {
		seen := make(map[int32]bool)
		for _, e := range c.of(n) {
			if _, known := t.of[e.class]; !known {
				t.order = append(t.order, e.class)
			}
			t.of[e.class] = t.of[e.class].with(e, 1)
			if e.label && !seen[e.class] {
				seen[e.class] = true
				cases[e.class]++
			}
		}
	}
	for _, class := range t.order {
		t.rarest = t.rarest.rarer(Class{int(class), cases[class]})
	}
	return t
}

func (c *confusion) contributions(of []int) Contributions {
	t := c.tallies(of)
	if t.rarest.Cases == 0 {
		return Contributions{Each: slices.Repeat([]float64{math.NaN()}, len(of))}.seen()
	}
	each := make([]float64, 0, len(t.of))
	for _, class := range t.order {
		each = append(each, t.of[class].f1())
	}
	f1, weight := mean(each), float64(len(of))/float64(max(len(t.of), 1))
	out := Contributions{Each: make([]float64, len(of)), Rare: t.rarest.Cases < rareCases, rarest: t.rarest}
	for i, n := range of {
		out.Each[i] = f1
		right := 0.0 // what hits are worth: each makes a miss, and a false alarm of another class
		for _, e := range c.of(n) {
			of := t.of[e.class]
			change := -float64(of.f1() * e.size())
			if e.hit {
				change += 2
				right += 2 / of.all
			}
			out.Each[i] += float64(weight * change / of.all)
		}
		out.weight = max(out.weight, float64(weight*right))
	}
	out.Least, out.Most = f1, f1
	worst, best, sum := 0.0, 0.0, 0.0
	for _, class := range t.order {
		of := t.of[class]
		loss := weight * of.f1() / of.all
		sum, worst = sum+loss, max(worst, loss)
		best = max(best, weight*(2-2*of.f1())/of.all)
	}
	if !c.multi {
		sum = 2 * worst // the class that is right, and the one that is answered
	}
	seen := out.seen()
	out.Least, out.Most = min(seen.Least, f1-sum), max(seen.Most, f1+best)
	return out
}
