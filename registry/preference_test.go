package registry_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestRankEngines(t *testing.T) {
	t.Parallel()
	engine := func(d, precision, version string, gpu bool) registry.Engine {
		e := registry.Engine{Digest: registry.Digest(d), Variant: d, Precision: precision}
		e.Toolchain.Version = version
		e.Target.OS = "linux"
		if gpu {
			e.Target.Accelerator = &registry.TargetAccelerator{Vendor: "nvidia"}
		}
		return e
	}
	cases := map[string]struct {
		better, worse registry.Engine
		why           string
	}{
		"a closer match before a precision": {
			engine("b", "fp32", "1", true), engine("a", "int8", "2", false), "matches this node more closely",
		},
		"a precision before a toolchain": {engine("b", "int8", "1", false), engine("a", "fp16", "2", false), "lower precision"},
		"int4 is less than int8":         {engine("b", "int4", "1", false), engine("a", "int8", "1", false), "lower precision"},
		"compressed before its like":     {engine("b", "fp32-compressed", "1", false), engine("a", "fp32", "2", false), "is compressed"},
		"bits before compression":        {engine("b", "int8", "1", false), engine("a", "fp32-compressed", "2", false), "lower precision"},
		"an unknown precision":           {engine("b", "fp64", "1", false), engine("a", "fp3", "2", false), "lower precision"},
		"a toolchain before a digest":    {engine("b", "int8", "1.10", false), engine("a", "int8", "1.9", false), "newer toolchain"},
		"fp8 and int8 are equal":         {engine("a", "int8", "1", false), engine("b", "fp8", "1", false), "lower digest"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := []registry.Engine{c.worse, c.better}
			if got := registry.RankEngines(given); got[0].Digest != c.better.Digest {
				t.Errorf("the best is %s, want %s", got[0].Digest, c.better.Digest)
			}
			if given[0].Digest != c.worse.Digest {
				t.Error("the given order changed")
			}
			why := registry.WhyPreferred(c.better, c.worse)
			if strings.Contains(why, "limits") {
				t.Errorf("says %q, and an engine may have failed its limits", why)
			}
			if !strings.Contains(why, c.why) || !strings.HasPrefix(why, c.better.Label()) {
				t.Errorf("says %q, want %q of %s", why, c.why, c.better.Label())
			}
		})
	}
}

// Engines in any order get the same ranks.
func TestRankEnginesIsTotal(t *testing.T) {
	t.Parallel()
	engines := []registry.Engine{
		{Digest: "a", Precision: "fp32"}, {Digest: "b", Precision: "int8"}, {Digest: "c", Precision: "int8"}, {Digest: "d", Precision: "other"},
	}
	want := []registry.Digest{"b", "c", "a", "d"}
	for range engines {
		engines = append(engines[1:], engines[0])
		var got []registry.Digest
		for _, e := range registry.RankEngines(engines) {
			got = append(got, e.Digest)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
