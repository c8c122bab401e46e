package tradeoff

import (
	"fmt"
	"slices"
)

// Advice says which of the field's usual rules the points follow, and what comes next
// where they do not suffice: quantize first, then distil, then prune; quantize after
// training, and in training only where that loses too much.
func (o Objective) Advice(points []Point) []string {
	integers := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Int8 })
	var said []string
	if len(integers) > 0 {
		said = append(said, "quantize first: it takes minutes and no training")
	}
	said = append(said, o.training(integers)...)
	if _, ok := o.Choose(points); ok || len(points) == 0 {
		return said
	}
	fast := slices.ContainsFunc(points, func(p Point) bool {
		return !slices.ContainsFunc(o.Violations(p), func(v string) bool { return v == "p50" || v == "p99" })
	})
	if !fast {
		said = append(said, "no precision is fast enough: distil into a smaller network next, then prune it; build what comes out as a model of its own")
	}
	return said
}

// training says whether quantization after training is enough.
func (o Objective) training(integers []Point) []string {
	if len(integers) == 0 {
		return nil
	}
	faithful := func(p Point) bool {
		return !slices.ContainsFunc(o.Violations(p), func(v string) bool { return v == "limits" || v == "accuracy_drop" })
	}
	if slices.ContainsFunc(integers, faithful) {
		return []string{"quantize after training: it loses little enough, so that training with quantization (QAT) is not needed"}
	}
	least := slices.MinFunc(integers, func(p, q Point) int { return Objective{Goal: Accuracy}.compare(p, q) })
	return []string{fmt.Sprintf("quantization after training loses too much everywhere, least in %s: leave its costliest layers out (verify names them), "+
		"then train with quantization (QAT) and build that model with quantize: {method: none}", least.Name)}
}
