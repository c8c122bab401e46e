package spec

import (
	"fmt"
	"slices"
)

// Candidates lists the variants to try: those of tune, or else one of each method that
// calibration and the source allow; each also without the nodes of every list to exclude.
// Variants that the spec has are among them.
func (s *Spec) Candidates() []Variant {
	base := slices.Clone(s.Variants)
	more, declared := s.Tune.Variants, len(s.Tune.Variants) > 0
	if !declared {
		more = s.usual()
	}
	for _, v := range more {
		known := func(have Variant) bool { return have.says() == v.says() || !declared && have.Name == v.Name }
		if !slices.ContainsFunc(base, known) {
			base = append(base, v)
		}
	}
	var all []Variant
	for _, v := range base {
		all = append(all, v)
		for i, list := range s.Tune.Exclude {
			if v.Quantize == nil || v.Quantize.Method == MethodNone {
				break
			}
			q := *v.Quantize
			q.Exclude = slices.Concat(q.Exclude, list)
			all = append(all, Variant{Name: fmt.Sprintf("%s-x%d", v.Name, i+1), Precision: v.Precision, Model: v.Model, Compress: v.Compress, Quantize: &q, Load: v.Load})
		}
	}
	return all
}

// usual are the methods that a spec with calibration, or without, can try.
func (s *Spec) usual() []Variant {
	if slices.ContainsFunc(s.Variants, func(v Variant) bool {
		return v.Quantize != nil &&
			v.Quantize.Method == MethodNone && v.Model.Written == ""
	}) {
		return nil // the source is quantized already
	}
	methods := []Variant{
		{Name: "fp32"},
		{Name: "fp16"},
		{Name: "int8d", Quantize: &Quantize{Method: MethodDynamic}},
		{Name: "int4"},
	}
	if s.Calibration != nil {
		methods = append(methods,
			Variant{Name: "int8"},
			Variant{Name: "int8-channels", Quantize: &Quantize{Method: MethodStatic, PerChannel: true}},
			Variant{Name: "int8-entropy", Quantize: &Quantize{Method: MethodStatic, Observer: ObserverEntropy}},
		)
	}
	for i := range methods {
		methods[i].complete()
	}
	return methods
}

// OnCases is the spec with the cases of another folder, the limits of the default preset, and of accuracy
// the metric alone.
func (s *Spec) OnCases(folder string) *Spec {
	other := *s
	other.Cases = Cases{Path: Path{Written: folder}, Labels: s.Cases.Labels, Compare: s.Cases.Compare}
	other.Limits = Limits{}
	if a := s.Limits.Accuracy; a != nil {
		measured := *a
		measured.Min, measured.Max, measured.Drop, measured.Regression, measured.Slices = nil, nil, nil, nil, nil
		measured.Relative = &AtLeast{}
		other.Limits.Accuracy = &measured
	}
	return &other
}

// Trying is the spec with other variants, for the targets of these names alone.
func (s *Spec) Trying(variants []Variant, targets []string) *Spec {
	other := *s
	other.Variants, other.Targets = variants, nil
	var names []string
	for _, v := range variants {
		names = append(names, v.Name)
	}
	for _, t := range s.Targets {
		if slices.Contains(targets, t.Name) {
			t.Variants = names
			other.Targets = append(other.Targets, t)
		}
	}
	return &other
}
