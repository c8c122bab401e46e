// Package divergence finds in a graph of tensors where an engine and its reference model part ways, from
// how far each tensor that was compared is from the reference's. Pure: nothing is run here.
//
// Errors of a network do not only grow: a softmax forgets what a mask has lost, and a normalization lets an
// offset vanish. So a tensor counts only if its error reaches an output, through tensors that are bad
// too. Why the graph is scanned and not halved: docs/decisions/0059-where-an-engine-differs.md.
package divergence

import (
	"math"
	"slices"
)

// Value is a tensor that a node of the graph computes.
type Value struct {
	Name     string   `json:"name"`
	Node     string   `json:"node"`
	Operator string   `json:"operator"`
	Inputs   []string `json:"inputs"` // tensors that it is computed of; others than values are inputs of the model
}

// Graph is the values in topological order, and which of them are outputs.
type Graph struct {
	Values  []Value
	Outputs []string
}

// Found says where errors begin. The zero Found is nowhere.
type Found struct {
	Value Value
	// SNRdB is that of the value, and InputsSNRdB that of the worst measured tensor that it is computed of,
	// perhaps through others that were not measured: +Inf if there is none but inputs of the model.
	SNRdB, InputsSNRdB float64
	// Nodes are those that compute the value from measured tensors: the one that computes it is the last,
	// and before it come those whose own tensors the engine does not have.
	Nodes []Value
	// Sharp is true if more than half of the value's error begins in Nodes. Else it has added up along the
	// way, and Sharpest is the value before it, or itself, at which the most is added.
	Sharp    bool
	Sharpest Value
	// Recovered are values that are worse than the limit, and whose error reaches no output.
	Recovered []string
}

// halfOfNoise is the loss in dB from which on more than half of the error of a tensor is new.
const halfOfNoise = 3.0103

// Find returns the first value, in the order of the graph, whose ratio of signal to noise is below limit,
// in dB, and whose error reaches an output. snr has the ratios of the values that were measured. ok is
// false if there is none.
func Find(g Graph, snr map[string]float64, limit float64) (found Found, ok bool) {
	w := newWalk(g, snr, limit)
	for _, v := range g.Values {
		if !w.bad(v.Name) {
			continue
		}
		if !w.reaches[v.Name] {
			found.Recovered = append(found.Recovered, v.Name)
			continue
		}
		if !ok {
			ok = true
			found.Value, found.SNRdB = v, snr[v.Name]
			found.InputsSNRdB, found.Nodes = w.before(v)
			found.Sharp = !(found.InputsSNRdB-found.SNRdB < halfOfNoise) // also of NaN
			found.Sharpest = w.sharpest(v)
		}
	}
	return found, ok
}

// walk is a graph with the edges between measured values.
type walk struct {
	byName  map[string]Value
	order   []Value
	snr     map[string]float64
	limit   float64
	reaches map[string]bool // bad values whose error reaches an output
}

func newWalk(g Graph, snr map[string]float64, limit float64) *walk {
	w := &walk{byName: make(map[string]Value, len(g.Values)), order: g.Values, snr: snr, limit: limit, reaches: make(map[string]bool)}
	for _, v := range g.Values {
		w.byName[v.Name] = v
	}
	// From the end: what an unmeasured value passes on is not known, so that it passes everything on.
	passes := make(map[string]bool)
	for _, name := range g.Outputs {
		passes[name] = true
	}
	for _, v := range slices.Backward(g.Values) {
		_, measured := snr[v.Name]
		if !passes[v.Name] || measured && !w.bad(v.Name) {
			continue
		}
		if measured {
			w.reaches[v.Name] = true
		}
		for _, input := range v.Inputs {
			passes[input] = true
		}
	}
	return w
}

// bad reports whether a value was measured and is below the limit. NaN is.
func (w *walk) bad(name string) bool {
	snr, ok := w.snr[name]
	return ok && !(snr >= w.limit)
}

// before returns the ratio of the worst measured tensor that a value is computed of, and the nodes from
// there to it, in the order of the graph.
func (w *walk) before(v Value) (worst float64, nodes []Value) {
	worst = math.Inf(1)
	within := map[string]bool{}
	var visit func(v Value)
	visit = func(v Value) {
		if within[v.Name] {
			return
		}
		within[v.Name] = true
		for _, name := range v.Inputs {
			if snr, ok := w.snr[name]; ok {
				worst = math.Min(worst, snr)
			} else if input, ok := w.byName[name]; ok {
				visit(input)
			}
		}
	}
	visit(v)
	for _, each := range w.order {
		if within[each.Name] {
			nodes = append(nodes, each)
		}
	}
	return worst, nodes
}

// sharpest returns the measured value, of one and all before it, at which the most noise is added.
func (w *walk) sharpest(last Value) Value {
	reached := map[string]bool{last.Name: true}
	best, most := last, math.Inf(-1)
	for _, v := range slices.Backward(w.order) {
		if !reached[v.Name] {
			continue
		}
		for _, input := range v.Inputs {
			reached[input] = true
		}
		own, measured := w.snr[v.Name]
		if !measured || w.bad(v.Name) && !w.reaches[v.Name] {
			continue
		}
		inputs, _ := w.before(v)
		if added := power(own) - power(inputs); added > most {
			best, most = v, added
		}
	}
	return best
}

// power is the part of the signal that the noise has, of a ratio in dB.
func power(db float64) float64 {
	if math.IsNaN(db) {
		return math.Inf(1)
	}
	return math.Pow(10, -db/10)
}
