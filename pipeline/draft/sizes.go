package draft

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// proposedSizes adds to an interface the sizes that the graph can run of each open dimension whose
// size is not known, and says why it is these.
func proposedSizes(iface validators.Interface, uses map[string]onnx.Use) (_ validators.Interface, why string) {
	proposed := make(map[string]onnx.Sizes)
	var order []string
	for _, input := range iface.Inputs {
		for axis, d := range input.Shape {
			s, ok := uses[input.Name].Sizes[axis]
			if _, known := iface.Dims[d.Symbol]; !ok || known || d.Symbol == "" {
				continue
			}
			if old, taken := proposed[d.Symbol]; taken {
				s = bothSizes(old, s)
			} else {
				order = append(order, d.Symbol)
			}
			proposed[d.Symbol] = s
		}
	}
	dims := make(map[string]validators.DimRange, len(iface.Dims))
	for symbol, r := range iface.Dims {
		dims[symbol] = r
	}
	var reasons []string
	for _, symbol := range order {
		s := proposed[symbol]
		r := validators.DimRange{Min: s.Min, Opt: s.Opt, Max: s.Max}
		if r.Validate() != nil {
			continue // its inputs have no size in common
		}
		dims[symbol] = r
		if !slices.Contains(reasons, s.Why) {
			reasons = append(reasons, s.Why)
		}
	}
	iface.Dims = dims
	return iface, strings.Join(reasons, "; ")
}

// bothSizes are the sizes that two inputs can have.
func bothSizes(a, b onnx.Sizes) onnx.Sizes {
	if b.Max < a.Max || b.Min > a.Min {
		a.Why = b.Why
	}
	a.Min, a.Max = max(a.Min, b.Min), min(a.Max, b.Max)
	a.Opt = min(max(a.Opt, b.Opt, a.Min), a.Max)
	return a
}

// withSizesOf gives the open dimensions of an interface the sizes that cases have, within what the
// graph can run. seen has them as the usual sizes, 1 where cases lie along a dimension.
func withSizesOf(iface, seen validators.Interface) validators.Interface {
	dims := make(map[string]validators.DimRange, len(seen.Dims))
	for symbol, r := range seen.Dims {
		if proposed, ok := iface.Dims[symbol]; ok {
			r.Min, r.Max = min(proposed.Min, r.Opt), max(proposed.Max, r.Opt)
		}
		dims[symbol] = r
	}
	iface.Dims = dims
	return iface
}

// Drafted is a spec that was drafted.
type Drafted struct {
	Text     []byte
	Warnings []string // of what cases that are generated do not show
}

// draftWarnings says of what a draft that generates cases says too little.
func draftWarnings(iface validators.Interface, uses map[string]onnx.Use) []string {
	if text := ingest.NoiseWarning(iface, uses); text != "" {
		return []string{fmt.Sprintf("%s, and name them with init --cases FILE or in cases:", text)}
	}
	return nil
}
