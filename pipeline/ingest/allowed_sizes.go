package ingest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// AllowedSizes are the sizes that a model takes of each open dimension, by its name, as an importer found them: the smallest and
// the largest. Nil is no bound.
type AllowedSizes map[string][2]*int64

// Allowed returns the sizes that the source takes, or none where it does not say them.
func (m Model) Allowed() AllowedSizes {
	var result struct {
		Sizes AllowedSizes `json:"sizes"`
	}
	if m.Plan == nil || json.Unmarshal(m.Step.Outcome.Result, &result) != nil {
		return nil
	}
	return result.Sizes
}

// dims are the sizes that a spec declares, and those that the source takes of dimensions that it does not mention. Errors:
// CodeInvalid for a declared size that the source does not take.
func (a AllowedSizes) dims(s *spec.Spec) (map[string]validators.DimRange, error) {
	dims := s.Shapes.Dims()
	for _, name := range slices.Sorted(maps.Keys(a)) {
		declared, ok := dims[name]
		if !ok {
			dims[name] = a.usual(name)
			continue
		}
		if least, most := a[name][0], a[name][1]; least != nil && declared.Min < *least || most != nil && declared.Max > *most {
			fits := a.within(name, declared)
			return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: shapes: %s is from %d to %d, and %s takes %s: it was exported so",
				s.File, name, declared.Min, declared.Max, s.Source.Path.Written, a.text(name)),
				"write shapes: {%s: [%d, %d, %d]}, or export the model for other sizes", name, fits.Min, fits.Opt, fits.Max)
		}
	}
	return dims, nil
}

// usual is what a spec gets that does not mention a dimension: all sizes that the source names.
func (a AllowedSizes) usual(name string) validators.DimRange {
	r := validators.DefaultDimRange()
	if most := a[name][1]; most != nil {
		r.Max = *most
	}
	return a.within(name, r)
}

// within are some sizes, moved to where the source takes them.
func (a AllowedSizes) within(name string, r validators.DimRange) validators.DimRange {
	least, most := int64(0), int64(math.MaxInt64)
	if of := a[name][0]; of != nil {
		least = *of
	}
	if of := a[name][1]; of != nil {
		most = *of
	}
	move := func(size int64) int64 { return min(max(size, least), most) }
	return validators.DimRange{Min: move(r.Min), Opt: move(r.Opt), Max: move(r.Max)}
}

// text says the sizes that the source takes: "sizes from 2 to 16".
func (a AllowedSizes) text(name string) string {
	least, most := a[name][0], a[name][1]
	switch {
	case most == nil:
		return fmt.Sprintf("sizes from %d", *least)
	case least == nil:
		return fmt.Sprintf("sizes up to %d", *most)
	}
	return fmt.Sprintf("sizes from %d to %d", *least, *most)
}

// Drafted gives an interface the sizes that the source bounds, so that a first spec has them.
func (a AllowedSizes) Drafted(iface validators.Interface) validators.Interface {
	dims := make(map[string]validators.DimRange)
	for _, name := range iface.Symbols() {
		if bounds := a[name]; bounds[0] != nil || bounds[1] != nil {
			dims[name] = a.usual(name)
		}
	}
	if len(dims) > 0 {
		iface.Dims = dims
	}
	return iface
}
