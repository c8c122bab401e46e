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
	if !slices.Equal(spec.Toolchains(), drivers.Names()) {
		t.Errorf("a spec may name %v, there are drivers %v", spec.Toolchains(), drivers.Names())
	}
	for _, name := range drivers.Names() {
		s, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if p := s.Profile; p.Name != name || p.Format == "" || p.Entry == "" || p.CompileOptions == nil || len(s.Lock) == 0 || s.Code[s.Program()] == nil {
			t.Errorf("%s: the driver is not complete: %+v", name, p)
		}
	}
}
