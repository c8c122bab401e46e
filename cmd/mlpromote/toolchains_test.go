package main

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

// What a spec may ask for is what there are drivers for, each of which says how its
// engines are made and named.
func TestSpecKnowsTheDrivers(t *testing.T) {
	t.Parallel()
	var engines []string
	for _, name := range drivers.Names() {
		s, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Lock) == 0 || s.Code[s.Program()] == nil {
			t.Errorf("%s: the driver is not complete", name)
		}
		if s.Profile.Name == "" && (len(s.Imports) > 0 || s.Quantizes) {
			continue // it makes no engines
		}
		engines = append(engines, name)
		if p := s.Profile; p.Name != name || p.Format == "" || p.Entry == "" || p.CompileOptions == nil {
			t.Errorf("%s: the driver is not complete: %+v", name, p)
		}
	}
	if !slices.Equal(spec.Toolchains(), engines) {
		t.Errorf("a spec may name %v, there are drivers %v", spec.Toolchains(), engines)
	}
	for _, format := range spec.Formats() {
		if _, err := drivers.Importer(format); err != nil {
			t.Error(err)
		}
	}
}
