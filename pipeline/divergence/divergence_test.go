package divergence_test

import (
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/divergence"
)

// chain is a graph in which each value is computed of the one before, and the last is the output.
func chain(names ...string) divergence.Graph {
	g := divergence.Graph{Outputs: names[len(names)-1:]}
	from := "x"
	for _, name := range names {
		g.Values = append(g.Values, value(name, from))
		from = name
	}
	return g
}

func value(name string, inputs ...string) divergence.Value {
	return divergence.Value{Name: name, Node: "node_" + name, Operator: "Op", Inputs: inputs}
}

func TestFind(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	masked := divergence.Graph{Outputs: []string{"out"}, Values: []divergence.Value{
		value("mask", "m"), value("scores", "x"), value("softmax", "scores", "mask"), value("out", "softmax"),
	}}
	for name, c := range map[string]struct {
		graph     divergence.Graph
		snr       map[string]float64
		limit     float64
		want      string // node, "" for nowhere
		sharp     bool
		sharpest  string
		nodes     []string
		recovered []string
	}{
		"equal": {graph: chain("a", "b"), snr: map[string]float64{"a": math.Inf(1), "b": math.Inf(1)}, limit: 80},
		"a drop": {graph: chain("a", "b", "c"), snr: map[string]float64{"a": 120, "b": 20, "c": 22}, limit: 80, want: "b",
			sharp: true, sharpest: "b", nodes: []string{"b"}},
		"the first node": {graph: chain("a", "b"), snr: map[string]float64{"a": 5, "b": 7}, limit: 12, want: "a", sharp: true,
			sharpest: "a", nodes: []string{"a"}},
		"errors that add up": {graph: chain("a", "b", "c", "d"), snr: map[string]float64{"a": 14, "b": 13.5, "c": 12.5, "d": 11.5}, limit: 12,
			want: "d", sharpest: "a", nodes: []string{"d"}},
		"not measured between": {graph: chain("a", "b", "c"), snr: map[string]float64{"a": 120, "c": 20}, limit: 80, want: "c", sharp: true,
			sharpest: "c", nodes: []string{"b", "c"}},
		"NaN": {graph: chain("a", "b"), snr: map[string]float64{"a": 120, "b": nan}, limit: 80, want: "b", sharp: true,
			sharpest: "b", nodes: []string{"b"}},
		"what recovers": {graph: masked, snr: map[string]float64{"mask": -3, "scores": 70, "softmax": 65, "out": 60}, limit: 40,
			recovered: []string{"mask"}},
		"what recovers, and more": {graph: masked, snr: map[string]float64{"mask": -3, "scores": 70, "softmax": 65, "out": 20}, limit: 40,
			want: "out", sharp: true, sharpest: "out", nodes: []string{"out"}, recovered: []string{"mask"}},
		"not monotone": {graph: chain("a", "b", "c"), snr: map[string]float64{"a": 30, "b": 60, "c": 20}, limit: 40, want: "c",
			sharp: true, sharpest: "c", nodes: []string{"c"}, recovered: []string{"a"}},
		"no measured output": {graph: chain("a", "b"), snr: map[string]float64{"a": 10}, limit: 40, want: "a", sharp: true, sharpest: "a",
			nodes: []string{"a"}},
		"just at the limit": {graph: chain("a", "b"), snr: map[string]float64{"a": 60, "b": 40}, limit: 40},
		"half of the error is new": {graph: chain("a", "b"), snr: map[string]float64{"a": 3.0103, "b": 0}, limit: 3, want: "b", sharp: true,
			sharpest: "b", nodes: []string{"b"}},
		"two that add the same": {graph: divergence.Graph{Outputs: []string{"out"}, Values: []divergence.Value{value("p", "x"), value("q", "x"), value("out", "p", "q")}},
			snr: map[string]float64{"p": 13, "q": 13, "out": 11}, limit: 12, want: "out", sharpest: "q", nodes: []string{"out"}},
		"a graph with no measures": {graph: chain("a", "b"), limit: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, ok := divergence.Find(c.graph, c.snr, c.limit)
			if ok != (c.want != "") || found.Value.Name != c.want {
				t.Fatalf("found %q, want %q", found.Value.Name, c.want)
			}
			if !slices.Equal(found.Recovered, c.recovered) {
				t.Errorf("recovered %q, want %q", found.Recovered, c.recovered)
			}
			if !ok {
				return
			}
			var nodes []string
			for _, n := range found.Nodes {
				nodes = append(nodes, n.Name)
			}
			if !slices.Equal(nodes, c.nodes) {
				t.Errorf("nodes %q, want %q", nodes, c.nodes)
			}
			if found.Sharp != c.sharp {
				t.Errorf("sharp %t, want %t: %+v", found.Sharp, c.sharp, found)
			}
			if found.Sharpest.Name != c.sharpest {
				t.Errorf("the sharpest is %q, want %q", found.Sharpest.Name, c.sharpest)
			}
		})
	}
}
