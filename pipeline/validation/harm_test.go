//go:build cgo

package validation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// effect is what an engine does to the task of its model, as testdata/trained/judge.py measures it on the labels of the cases.
type effect struct {
	Metric    string                `json:"metric"`
	Better    string                `json:"better"` // "more" or "less"
	Reference float64               `json:"reference"`
	Engine    float64               `json:"engine"`
	Groups    map[string][2]float64 `json:"groups,omitempty"` // of the reference and the engine
	Changed   float64               `json:"changed"`          // share of the answers that differ
	State     float64               `json:"state"`            // error of the state, in spreads
	Finite    bool                  `json:"finite"`
	Differs   bool                  `json:"differs"` // in any bit of any case
}

// allowance is how much an engine may do to a task without harm.
type allowance struct {
	points  float64 // of a metric that is better if it is more, from 0 to 1
	growth  float64 // of a metric that is better if it is less, as a share of the reference's
	group   float64 // the part of a group's metric that may be lost; of an error the growth
	changed float64 // share of the answers
	state   float64 // spreads
}

// Harm is defined by the task and not by the figures that verify computes. These allowances were written before the first run.
//
// exact holds for engines in fp32 and fp16. rounded is for honest engines in int8: answers may change as long as the metric stays. A faulty
// engine in int8 may do as much as the honest engine of the same model, runtime and variant, and overHonest in addition. If that honest engine
// does harm itself, rounded holds for the faulty one, too.
var (
	exact      = allowance{points: 0.01, growth: 0.05, group: 0.5, changed: 0.01, state: 0.01}
	rounded    = allowance{points: 0.05, growth: 0.25, group: 0.5, changed: 1, state: 0.3}
	overHonest = allowance{points: 0.02, growth: 0.10, changed: 0.01, state: 0.02}
)

// allowed is the allowance of an engine. honest is the effect of the honest engine that a faulty one in int8 is compared with.
func allowed(variant string, faulty bool, honest effect) allowance {
	switch {
	case !strings.HasPrefix(variant, "int"):
		return exact
	case !faulty || harm(honest, rounded) != "":
		return rounded
	}
	a := allowance{
		points: overHonest.points, growth: overHonest.growth, group: max(exact.group, 1.5*honest.worstGroup()),
		changed: 2*honest.Changed + overHonest.changed, state: 2*honest.State + overHonest.state,
	}
	if lost := max(honest.lost(), 0); honest.Better == "less" {
		a.growth += lost
	} else {
		a.points += lost
	}
	return a
}

// lost is the loss of the metric: points, or of an error its growth as a share of the reference's.
func (e effect) lost() float64 { return lossOf(e.Better, e.Reference, e.Engine) }

func lossOf(better string, reference, engine float64) float64 {
	if better == "less" {
		return (engine - reference) / max(reference, 1e-9)
	}
	return reference - engine
}

// leastGroup is the metric that the reference reaches in a group that can be lost. A group below it hardly works, and a single case is much of
// it.
const leastGroup = 0.3

// groupLost is the part of its metric that a group loses; of an error its growth.
func (e effect) groupLost(name string) float64 {
	g := e.Groups[name]
	switch {
	case e.Better == "less":
		return lossOf("less", g[0], g[1])
	case g[0] < leastGroup:
		return 0
	}
	return (g[0] - g[1]) / g[0]
}

// worstGroup is the largest of these losses.
func (e effect) worstGroup() (worst float64) {
	for name := range e.Groups {
		worst = max(worst, e.groupLost(name))
	}
	return worst
}

// harm returns why an engine harms the task of its model; empty if it does not.
func harm(e effect, a allowance) string {
	const rounding = 1e-9 // of differences of shares
	points, growth := e.lost() > a.points+rounding, e.lost() > a.growth+rounding
	switch {
	case !e.Differs:
		return ""
	case !e.Finite:
		return "values that are not finite"
	case e.Better == "more" && points, e.Better == "less" && growth:
		return fmt.Sprintf("%s %.3g, reference %.3g", e.Metric, e.Engine, e.Reference)
	case e.State > a.state:
		return fmt.Sprintf("state wrong by %.2g of its spread", e.State)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Groups)) {
		if e.groupLost(name) > a.group+rounding {
			return fmt.Sprintf("%s: %.3g, reference %.3g", name, e.Groups[name][1], e.Groups[name][0])
		}
	}
	if e.Changed > a.changed+rounding {
		return fmt.Sprintf("%.1f %% of the answers changed", 100*e.Changed)
	}
	return ""
}

// An engine harms by its metric, a group, its answers, its state, or values that are not finite. In int8 the honest engine counts.
func TestHarm(t *testing.T) {
	t.Parallel()
	with := func(change func(*effect)) effect {
		e := effect{Metric: "accuracy", Better: "more", Reference: 0.9, Engine: 0.9, Groups: map[string][2]float64{"class 1": {0.8, 0.8}}, Finite: true, Differs: true}
		change(&e)
		return e
	}
	nothing := with(func(*effect) {})
	poor := with(func(e *effect) { e.Engine, e.Changed, e.State = 0.87, 0.05, 0.1 })
	broken := with(func(e *effect) { e.Engine, e.Changed = 0.5, 0.5 })
	for name, c := range map[string]struct {
		e       effect
		variant string
		faulty  bool
		honest  effect
		want    string // in the harm; empty for none
	}{
		"a difference alone":                {nothing, "fp32", true, nothing, ""},
		"the same bits":                     {with(func(e *effect) { e.Differs, e.Engine = false, 0.5 }), "fp32", true, nothing, ""},
		"infinity":                          {with(func(e *effect) { e.Finite = false }), "fp32", true, nothing, "not finite"},
		"a point":                           {with(func(e *effect) { e.Engine = 0.89 }), "fp32", true, nothing, ""},
		"more than a point":                 {with(func(e *effect) { e.Engine = 0.888 }), "fp16", true, nothing, "accuracy 0.888"},
		"an error that grows":               {with(func(e *effect) { e.Better, e.Engine = "less", 0.96 }), "fp32", true, nothing, "accuracy 0.96"},
		"an error that shrinks":             {with(func(e *effect) { e.Better, e.Engine, e.Groups = "less", 0.5, nil }), "fp32", true, nothing, ""},
		"a class lost":                      {with(func(e *effect) { e.Groups["class 1"] = [2]float64{0.8, 0.3} }), "fp32", true, nothing, "class 1"},
		"a class that never worked":         {with(func(e *effect) { e.Groups["class 1"] = [2]float64{0.2, 0} }), "fp32", true, nothing, ""},
		"answers":                           {with(func(e *effect) { e.Changed = 0.011 }), "fp32", true, nothing, "1.1 % of the answers"},
		"a state":                           {with(func(e *effect) { e.State = 0.02 }), "fp32", true, nothing, "state"},
		"as honest engines":                 {poor, "int8-static", true, poor, ""},
		"two points more":                   {with(func(e *effect) { e.Engine = 0.849 }), "int8-static", true, poor, "accuracy 0.849"},
		"more answers than honest":          {with(func(e *effect) { e.Changed = 0.12 }), "int8-static", true, poor, "12.0 %"},
		"a state worse than honest":         {with(func(e *effect) { e.State = 0.23 }), "int8-static", true, poor, "state"},
		"an honest engine, rounded":         {poor, "int8-static", false, effect{}, ""},
		"an honest engine, bad":             {broken, "int8-dynamic", false, effect{}, "accuracy 0.5"},
		"as bad as an honest engine":        {broken, "int8-dynamic", true, broken, "accuracy 0.5"},
		"better than an honest one, broken": {poor, "int8-dynamic", true, broken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := harm(c.e, allowed(c.variant, c.faulty, c.honest))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("harm %q, want %q", got, c.want)
			}
		})
	}
}
