package tensor

import (
	"math"
	"slices"
)

// maxKept is how many values a case has at most that are kept to compare groups of cases.
const maxKept = 16

// What makes a group of cases one in which an engine always gives the same answer. Rounding to a grid, as int8 has it, does not do that to
// values that vary by a twentieth of the spread of all.
const (
	leastInGroup = 8    // cases of a group
	otherAnswers = 5    // of these, cases with another class than the most frequent one, by the reference
	variesFrom   = 0.05 // standard deviation of the reference's values in the group / of all
	constantTo   = 0.1  // standard deviation of the engine's values in the group / of the reference's
)

// caseValues are the values of a case on both sides; answers are their classes, -1 for none.
type caseValues struct {
	number            int // of the case
	reference, engine []float64
	answers           [2]int64
}

// Grouping has the group of each case, by something that cases have in common.
type Grouping struct {
	By string // "merchant"; empty for all cases
	// Of returns the group of a case; false if it is in none.
	Of func(number int) (value string, ok bool)
}

// Groups are groups of cases, with the answers of an engine in them.
type Groups struct {
	By    []string // what cases were grouped by
	Count int      // groups in which the reference's answers vary
	// Lost are those of them in which the engine always gives the same answer; Worst is the one with the most cases.
	Lost  int
	Worst LostGroup
}

// LostGroup is a group of cases in which the reference's answers vary and the engine's do not.
type LostGroup struct {
	By, Value string
	Cases     int
	// Index is the number of the constant value in each case; -1 for the class, and if a case has one value.
	Index int
}

// keep keeps the values of a case that is no copy, if there are few.
func (c *Comparison) keep(number int, reference, engine Tensor, again bool) {
	n := reference.Len()
	if again || !c.options.Keep || n == 0 || n > maxKept {
		return
	}
	of := caseValues{number, reference.Float64s(), engine.Float64s(), [2]int64{-1, -1}}
	if width := reference.Shape; reference.DType.Class() != ClassFloat && n == 1 {
		of.answers = [2]int64{int64(of.reference[0]), int64(of.engine[0])}
	} else if c.options.Ranks && len(width) > 0 && int(width[len(width)-1]) == n {
		of.answers = [2]int64{int64(Argmax(of.reference)), int64(Argmax(of.engine))}
	}
	c.kept = append(c.kept, of)
}

// Groups divides the cases by each of the groupings.
func (c *Comparison) Groups(groupings []Grouping) (g Groups) {
	if len(c.kept) == 0 {
		return g
	}
	spreads := make([]float64, len(c.kept[0].reference))
	for i := range spreads {
		spreads[i] = deviationOf(c.kept, i, true)
	}
	for _, by := range groupings {
		if by.By != "" {
			g.By = append(g.By, by.By)
		}
		members := make(map[string][]caseValues)
		for _, of := range c.kept {
			if value, ok := by.Of(of.number); ok {
				members[value] = append(members[value], of)
			}
		}
		for value, of := range members {
			varies, lost, at := constantIn(of, spreads, c.result.Float)
			if varies {
				g.Count++
			}
			if !lost {
				continue
			}
			group := LostGroup{by.By, value, len(of), at}
			if g.Lost++; g.Lost == 1 || group.Cases > g.Worst.Cases || group.Cases == g.Worst.Cases && by.By+"="+value < g.Worst.By+"="+g.Worst.Value {
				g.Worst = group
			}
		}
	}
	return g
}

// constantIn reports whether the reference's answers vary in a group, and whether the engine's do not where they do: its class, or the value
// at an index.
func constantIn(group []caseValues, spreads []float64, float bool) (varies, lost bool, at int) {
	at = -1
	if len(group) < leastInGroup {
		return false, false, at
	}
	if other := othersIn(group, 0); other >= otherAnswers {
		varies, lost = true, othersIn(group, 1) == 0
	}
	for i, whole := range spreads {
		if !float || slices.ContainsFunc(group, func(of caseValues) bool { return len(of.reference) != len(spreads) }) {
			break
		}
		reference := deviationOf(group, i, true)
		if !(reference > 0 && reference >= variesFrom*whole && reference <= math.MaxFloat64) {
			continue
		}
		varies = true
		if !lost && deviationOf(group, i, false) <= constantTo*reference {
			if lost = true; len(spreads) > 1 {
				at = i
			}
		}
	}
	return varies, lost, at
}

// othersIn is how many cases have another class than the most frequent one, on a side.
func othersIn(group []caseValues, side int) int {
	counts, most := make(map[int64]int), 0
	for _, of := range group {
		if of.answers[0] < 0 {
			return 0
		}
		counts[of.answers[side]]++
		most = max(most, counts[of.answers[side]])
	}
	return len(group) - most
}

// deviationOf is the standard deviation of the i-th values of cases; NaN if one is not finite.
func deviationOf(group []caseValues, i int, reference bool) float64 {
	var from, from2, first float64
	for k, of := range group {
		values := of.engine
		if reference {
			values = of.reference
		}
		if i >= len(values) {
			return math.NaN()
		}
		if k == 0 {
			first = values[i]
		}
		d := values[i] - first
		from, from2 = from+d, from2+d*d
	}
	if !(from2 <= math.MaxFloat64) {
		return math.NaN()
	}
	return math.Sqrt(variance(float64(len(group)), from, from2))
}
