// Package tradeoff compares ways to build a model: which of them no other beats in
// everything, and which serves an objective best. It measures nothing.
package tradeoff

import (
	"cmp"
	"slices"
)

// Point is a way to build the model and what was measured of it.
type Point struct {
	Name      string  // "linux-amd64-v3/int8"
	SizeBytes int64   // of the engine's files
	Loss      float64 // what is lost against the reference, less is better; may be negative
	P50Ns     int64
	P99Ns     int64
	PerSecond float64
	// Keeps is true where the engine keeps the limits of parity and accuracy of the spec.
	Keeps bool
	// Int8 is true for a precision below half: what training with quantization could help.
	Int8 bool
}

// axes are the figures in which one point can beat another; less is better in each.
func (p Point) axes() [4]float64 {
	return [4]float64{-p.PerSecond, float64(p.P99Ns), float64(p.SizeBytes), p.Loss}
}

// Dominates reports whether p is nowhere worse than q, and somewhere better.
func (p Point) Dominates(q Point) bool {
	a, b := p.axes(), q.axes()
	better := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		better = better || a[i] < b[i]
	}
	return better
}

// Front gives the indexes of the points that no other dominates, in their order: the
// Pareto front in throughput, p99, size and loss. Points that do not keep the limits are
// not on the front and do not dominate other points.
func Front(points []Point) []int {
	var front []int
	for i, p := range points {
		beaten := slices.ContainsFunc(points, func(q Point) bool { return q.Keeps && q.Dominates(p) })
		if p.Keeps && !beaten {
			front = append(front, i)
		}
	}
	return front
}

// Goal is the figure to be as good as possible.
type Goal string

// The goals. Latency is the median, size that of the files, accuracy the opposite of loss.
const (
	Throughput Goal = "throughput" // the zero Goal too
	Latency    Goal = "latency"
	Size       Goal = "size"
	Accuracy   Goal = "accuracy"
)

// Objective is what a choice is for. The zero Objective asks for throughput within the
// limits of the spec.
type Objective struct {
	Goal    Goal
	P50Ns   int64    // at most; 0 for any
	P99Ns   int64    // at most; 0 for any
	MaxLoss *float64 // at most; nil for any
}

// Violations says which constraints a point breaks: "limits", "p50", "p99", "accuracy_drop".
func (o Objective) Violations(p Point) []string {
	var broken []string
	for _, c := range []struct {
		name   string
		broken bool
	}{
		{"limits", !p.Keeps},
		{"p50", o.P50Ns > 0 && p.P50Ns > o.P50Ns},
		{"p99", o.P99Ns > 0 && p.P99Ns > o.P99Ns},
		{"accuracy_drop", o.MaxLoss != nil && !(p.Loss <= *o.MaxLoss)},
	} {
		if c.broken {
			broken = append(broken, c.name)
		}
	}
	return broken
}

// Choose gives the index of the point that serves the objective best among those that
// break no constraint, or false. Of equals the one is taken that is better in the other
// figures, and of those the first by name: the order of points does not count.
func (o Objective) Choose(points []Point) (int, bool) {
	best := -1
	for i, p := range points {
		if len(o.Violations(p)) == 0 && (best < 0 || o.compare(p, points[best]) < 0) {
			best = i
		}
	}
	return best, best >= 0
}

func (o Objective) compare(p, q Point) int {
	first := map[Goal]int{
		"": cmp.Compare(q.PerSecond, p.PerSecond), Throughput: cmp.Compare(q.PerSecond, p.PerSecond),
		Latency: cmp.Compare(p.P50Ns, q.P50Ns),
		Size:    cmp.Compare(p.SizeBytes, q.SizeBytes), Accuracy: cmp.Compare(p.Loss, q.Loss),
	}[o.Goal]
	a, b := p.axes(), q.axes()
	return cmp.Or(first, slices.Compare(a[:], b[:]), cmp.Compare(p.Name, q.Name))
}

// CostPerMillion is what a million predictions cost on a node of this price per hour that
// makes so many in a second, one after the other; 0 where nothing was measured.
func CostPerMillion(pricePerHour, perSecond float64) float64 {
	if perSecond <= 0 {
		return 0
	}
	return pricePerHour / 3600 / perSecond * 1e6
}
