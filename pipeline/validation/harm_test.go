//go:build cgo

package validation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// groupLost is the part of its metric that a group loses; of an error its growth.
func (e effect) groupLost(name string) float64 {
	g := e.Groups[name]
	if e.Better == "less" {
		return lossOf("less", g[0], g[1])
	}
	return (g[0] - g[1]) / max(g[0], 1e-9)
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
