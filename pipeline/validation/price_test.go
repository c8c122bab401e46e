//go:build cgo

package validation_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// missedAbout says what stands beside mutants that pass.
const missedAbout = `A default limit follows from kind and precision, and knows no model. A mutant counts by what honest engines of its own model have. So it may pass although
it counts: where honest engines of other models are further off than it. Beside each stands the figure of an output by which a limit would refuse it and
the fewest honest engines of its precision. Where that is none, the limit could be lower as far as this run shows. ` + "`mlpromote limits suggest`" + ` finds limits for a model.`

// price says which limit on a figure would refuse a mutant that passes, and how many honest engines of its
// precision, of all models and runtimes, the same limit would refuse.
func (v verdicts) price(r record) string {
	best, fewest, of, furthest := "", -1, 0, 0.0
	for _, name := range slices.Sorted(maps.Keys(r.Effects)) {
		if !limited(name) {
			continue
		}
		refused, all, worst := 0, 0, 0.0
		for _, h := range v.honest {
			have, ok := h.worstLike(name)
			if !ok || precision(h.Variant) != precision(r.Variant) {
				continue
			}
			all++
			worst = max(worst, have)
			if have >= r.effect(name) {
				refused++
			}
		}
		nearer := refused == fewest && r.effect(name)*furthest > r.effect(best)*worst // further from honest engines
		if all > 0 && (fewest < 0 || refused < fewest || nearer) {
			best, fewest, of, furthest = name, refused, all, worst
		}
	}
	if fewest < 0 {
		return "No honest engine has these figures."
	}
	return fmt.Sprintf("A limit on %s that refuses it (%s) refuses %d of %d honest engines of %s, the worst of which has %s",
		best, inUnit(best, r.effect(best)), fewest, of, precision(r.Variant), inUnit(best, furthest))
}

// inUnit writes an effect as its figure is written.
func inUnit(name string, effect float64) string {
	if strings.HasSuffix(name, " snrDb") {
		return fmt.Sprintf("%.3g dB", -20*math.Log10(effect))
	}
	return fmt.Sprintf("%.3g", effect)
}

// limited reports whether a figure is one that a default limit bounds.
func limited(name string) bool {
	return slices.ContainsFunc([]string{" maxError", " caseError", " systematic", " snrDb"},
		func(end string) bool { return strings.HasSuffix(name, end) })
}

// worstLike returns the largest value of a figure among the outputs whose default limits are like those of
// the named one: those of the regressor have limits of their own.
func (r record) worstLike(name string) (float64, bool) {
	_, figure, _ := strings.Cut(name, " ")
	worst, found := 0.0, false
	for other := range r.Effects {
		if strings.HasSuffix(other, " "+figure) && units(other) == units(name) {
			worst, found = max(worst, r.effect(other)), true
		}
	}
	return worst, found
}

// units reports whether a figure is of an output whose channels have units of their own.
func units(name string) bool {
	return strings.HasPrefix(name, "price ") || strings.HasPrefix(name, "angles ")
}

// inInt8 is the record of an engine in int8 with these figures.
func inInt8(family, fault string, effects map[string]evidence.Figure) record {
	effects["consistency repeat"] = 0
	return record{Family: family, Fault: fault, Runtime: "onnxruntime", Variant: "int8-static", Verdict: evidence.VerdictPass, Effects: effects}
}

// A mutant that passes is shown with the limit that would refuse it and the fewest honest engines, of any model.
func TestPriceOfALimit(t *testing.T) {
	t.Parallel()
	figures := func(caseError, snr evidence.Figure) map[string]evidence.Figure {
		return map[string]evidence.Figure{"y caseError": caseError, "y snrDb": -snr}
	}
	honest := []record{
		inInt8("a", "", figures(0.1, 40)), inInt8("a", "", figures(0.1, 40)), inInt8("b", "", figures(0.5, 25)), inInt8("b", "", figures(0.3, 31)),
		inInt8("c", "", map[string]evidence.Figure{"price caseError": 9, "price snrDb": 0}),
	}
	for name, c := range map[string]struct {
		caseError, snr evidence.Figure
		want           string
	}{
		"two of four are further off": {0.25, 32, "A limit on y caseError that refuses it (0.25) refuses 2 of 4 honest engines of int8, the worst of which has 0.5"},
		"one has as much":             {0.5, 31, "A limit on y caseError that refuses it (0.5) refuses 1 of 4 honest engines of int8, the worst of which has 0.5"},
		"decibels show it":            {0.25, 20, "A limit on y snrDb that refuses it (20 dB) refuses 0 of 4 honest engines of int8, the worst of which has 25 dB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mutant := inInt8("a", "fault", figures(c.caseError, c.snr))
			v := sortOut(append(slices.Clone(honest), mutant))
			if len(v.missed) != 1 {
				t.Fatalf("%d mutants passed although they count, want the one", len(v.missed))
			}
			if got := v.price(v.missed[0]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
