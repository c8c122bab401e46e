package goldenset

import (
	"bytes"
	"fmt"
	"math"
	"path"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	// A golden output differs where more than this share of its elements are outside the tolerance: another processor can
	// decide near ties otherwise. It also differs where one element is outside of this many times the tolerance.
	goldenShare = 1e-3
	goldenGross = 100
	// goldenRounding is what sums in another order differ by, relative to the largest value of the case: where few values are large, it
	// is more than a part of the scale of the others.
	goldenRounding = 1e-6
	// Answers must be no constant ones: golden outputs may not lose a class in more than half of its cases, if goldenAnswers cases or more
	// differ.
	goldenAnswers = 5
)

// Recomputed compares golden outputs with outputs that the reference model computed now. Tolerances follow from the new outputs,
// because a builder could make one golden value so large that no other difference counts.
type Recomputed struct {
	Pairs
	Allowed    Tolerance
	Quantities map[string]bool // outputs whose channels have units of their own
	Changed    map[int]bool    // cases whose values are not those that the golden outputs were computed of
}

// Quantities are the outputs with limits on each channel.
func Quantities(l validators.Limits) map[string]bool {
	names := make(map[string]bool)
	for _, of := range l.Precisions {
		for name, o := range of.Outputs {
			if o.PerChannel != nil && *o.PerChannel {
				names[name] = true
			}
		}
	}
	return names
}

// Judge counts the cases that differ, of all outputs together. The check names the first output that does, or else the one with the largest
// difference.
func (g Recomputed) Judge(check *evidence.Check) error {
	names, err := g.Names()
	if err != nil {
		return err
	}
	differ, rounded := make(map[int]bool), make(map[int]bool)
	for _, name := range names {
		scales, err := g.scales(name)
		if err != nil {
			return err
		}
		answers := tensor.NewComparison(tensor.Options{})
		for i, number := range g.Sample {
			found, err := g.compareCase(name, i, scales, answers)
			if err != nil {
				return err
			}
			if found.maxAbs > float64(check.Value) {
				check.Value = evidence.Figure(found.maxAbs)
				if len(differ) == 0 {
					check.Output = name
				}
			}
			if found.said == "" {
				continue
			}
			if g.Changed[number] {
				rounded[number] = true
				continue
			}
			if len(differ) == 0 {
				check.Output, check.Message = name, registry.PlainText(fmt.Sprintf("output %s of case %d: %s", name, number, found.said))
			}
			differ[number] = true
		}
		if cases := constantAnswers(answers); cases > 0 {
			check.Cases, check.Affected, check.Verdict, check.Output = len(g.Sample), cases, evidence.VerdictFail, name
			check.Message = fmt.Sprintf("output %s: the golden outputs lose an answer of the reference model in more than half of the cases that have it; %s differ",
				registry.PlainText(name), registry.Count(cases, "case"))
			return nil
		}
	}
	g.decide(check, len(differ), len(rounded))
	return nil
}

// decide decides by the number of cases that differ. rounded is how many of those differ whose values are not those that the golden outputs
// were computed of.
func (g Recomputed) decide(check *evidence.Check, differ, rounded int) {
	check.Cases, check.Affected, check.Verdict = len(g.Sample), differ, evidence.VerdictPass
	for _, number := range g.Sample {
		if g.Changed[number] {
			check.Converted++
		}
	}
	switch {
	case check.Affected > (check.Cases-check.Converted)/validators.GoldenDiffer:
		check.Verdict = evidence.VerdictFail
		check.Message = fmt.Sprintf("of %s the reference model computes something else than the golden outputs in %d: %s",
			registry.Count(check.Cases, "case"), check.Affected, check.Message)
	case check.Affected > 0:
		check.Verdict = evidence.VerdictRecorded
	case rounded > 0:
		check.Message = fmt.Sprintf("the golden outputs are of values that are rounded for engines in %s: in %d of these the reference model computes something else, "+
			"which the limits judge", registry.Count(check.Converted, "case"), rounded)
	}
}

// now reads what the reference model computed for a case of the sample. Errors: of an output that it left in another form than a
// tensor.
func (g Recomputed) now(name string, at int) (t tensor.Tensor, readable, err error) {
	file, ok := g.Outcome.File(path.Join("outputs", run.ReferenceID, CaseFile(at)))
	if !ok {
		return t, nil, registry.Errorf(registry.CodeInternal, "the reference model left no outputs of case %d", g.Sample[at])
	}
	t, readable = ReadRow(file.Path, name, 0)
	return t, readable, nil
}

// scales are those of the values that the reference model computes now.
func (g Recomputed) scales(name string) (Scales, error) {
	of := Scales{Each: g.Quantities[name]}
	var sizes tensor.Magnitudes
	for _, collect := range []func(tensor.Tensor){sizes.Add, func(t tensor.Tensor) { of.Add(t) }} {
		of.Below = min(sizes.Fill(tensor.FillsNear), ExtremeValue)
		for at := range g.Sample {
			t, readable, err := g.now(name, at)
			if err != nil {
				return of, err
			}
			if readable == nil {
				collect(t)
			}
		}
	}
	return of, nil
}

// differing is how a golden output of a case differs from what the reference model computed now: said is empty if it does not.
type differing struct {
	maxAbs float64
	said   string
}

func (g Recomputed) compareCase(name string, at int, scales Scales, answers *tensor.Comparison) (differing, error) {
	golden, err := g.GoldenRow(name, g.Sample[at])
	if err != nil {
		return differing{}, err
	}
	now, readable, err := g.now(name, at)
	switch {
	case err != nil:
		return differing{}, err
	case readable != nil:
		return differing{math.Inf(1), "it cannot be read: " + readable.Error()}, nil //nolint:nilerr // the model left something else
	case golden.DType != now.DType || !slices.Equal(golden.Shape, now.Shape):
		return differing{math.Inf(1), fmt.Sprintf("it is %s %v, and the golden output %s %v", now.DType, now.Shape, golden.DType, golden.Shape)}, nil
	}
	if err := answers.Add(g.Sample[at], now, golden); err != nil {
		return differing{}, err
	}
	return g.elements(golden, now, scales), nil
}

// constantAnswers is in how many cases golden outputs differ that lose a class in more than half of its cases; 0 for others.
func constantAnswers(c *tensor.Comparison) (cases int) {
	r := c.Result()
	if worst, ok := r.WorstClass(); r.Float || !ok || 2*worst.Lost <= worst.Cases {
		return 0
	}
	for _, of := range c.Each() {
		if of.Equal > 0 {
			cases++
		}
	}
	if cases < goldenAnswers {
		return 0
	}
	return cases
}

// elements compares two tensors of one type and shape.
func (g Recomputed) elements(golden, now tensor.Tensor, scales Scales) differing {
	want, got, size := golden.Float64s(), now.Float64s(), golden.DType.Size()
	var found differing
	outside, worst, at := 0, 0.0, -1
	rounding := 0.0
	if golden.DType.Class() == tensor.ClassFloat && !scales.Each {
		rounding = goldenRounding * scales.Largest(got)
	}
	for i := range want {
		if bytes.Equal(golden.Data[i*size:(i+1)*size], now.Data[i*size:(i+1)*size]) || math.IsNaN(want[i]) && math.IsNaN(got[i]) {
			continue
		}
		options := g.Allowed.Options(golden.DType, scales.At(i))
		difference := math.Abs(want[i] - got[i])
		times := difference / (options.ATol + rounding + options.RTol*math.Abs(got[i])) // +Inf where nothing is Allowed
		if !(difference <= math.MaxFloat64) {
			difference, times = math.Inf(1), math.Inf(1)
		}
		found.maxAbs = max(found.maxAbs, difference)
		if times > 1 {
			outside++
		}
		if at < 0 || times > worst {
			worst, at = times, i
		}
	}
	gross := worst > goldenGross && golden.DType.Class() == tensor.ClassFloat
	if gross || float64(outside) > goldenShare*float64(len(want)) {
		found.said = fmt.Sprintf("at %v it is %.6g, and the golden output %.6g", place(at, now.Shape), got[at], want[at])
	}
	return found
}

// place is the index of an element of a case, whose first dimension is that of the cases.
func place(at int, shape []int64) []int64 {
	index := make([]int64, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index[axis] = int64(at) % shape[axis]
		at /= int(shape[axis])
	}
	return index[min(1, len(index)):]
}
