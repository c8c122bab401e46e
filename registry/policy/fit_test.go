package policy_test

import (
	"maps"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// What an engine needs of runtimes is named only if that alone is missing, and the runtimes are not there at all.
func TestMissingRuntimes(t *testing.T) {
	t.Parallel()
	e := registrytest.MakeEngine("v3", "int8")
	e.Target.Runtimes = map[string]artifact.Constraint{"onnxruntime": {Min: "1.30.0"}}
	node := func(level, version string) artifact.Node {
		n := registrytest.Node(level)
		if n.Runtimes = nil; version != "" {
			n.Runtimes = map[string]string{"onnxruntime": version}
		}
		return n
	}
	unmet := []policy.Requirement{{Name: policy.RequireSignature}}
	for name, c := range map[string]struct {
		node  artifact.Node
		unmet []policy.Requirement
		want  map[string]string
		why   string
	}{
		"only a runtime":         {node("v3", ""), nil, map[string]string{"onnxruntime": ">= 1.30.0"}, "runtimes.onnxruntime: needs >= 1.30.0, has none"},
		"another version":        {node("v3", "1.29.0"), nil, nil, "runtimes.onnxruntime: needs >= 1.30.0, has 1.29.0"},
		"something else as well": {node("v2", ""), nil, nil, "cpu.level: needs v3, has v2"},
		"a requirement as well":  {node("v3", ""), unmet, nil, "runtimes.onnxruntime: needs >= 1.30.0, has none"},
		"it fits":                {node("v3", "1.30.0"), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fit := policy.FitOn(e, c.node, c.unmet)
			if got := fit.MissingRuntimes(); !maps.Equal(got, c.want) || fit.Why() != c.why || fit.Fits() != (c.why == "") {
				t.Errorf("missing are %v because of %q, want %v because of %q", got, fit.Why(), c.want, c.why)
			}
		})
	}
}

// A choice names the engine, the one behind it and why it goes before it, and the first of those that it replaces.
func TestChoose(t *testing.T) {
	t.Parallel()
	v3, v1, other := registrytest.MakeEngine("v3", "int8"), registrytest.MakeEngine("v1", "int8"), registrytest.MakeEngine("v1", "fp32")
	ranked := []artifact.Engine{v3, v1, other}
	fails := func(labels ...string) func(artifact.Engine) []policy.Requirement {
		return func(e artifact.Engine) []policy.Requirement {
			if slices.Contains(labels, e.Label()) {
				return []policy.Requirement{{Name: policy.RequireParity, Detail: "it fails"}}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		level string
		unmet func(artifact.Engine) []policy.Requirement
		want  string
	}{
		"the first":            {"v3", fails(), v3.Label() + ", which goes before " + v1.Label() + ": it asks for more of the processor"},
		"another processor":    {"v1", fails(), v1.Label() + ", which goes before " + other.Label() + ": it comes first in the spec; " + v3.Label() + " would come first: cpu.level: needs v3, has v1"},
		"the first fails":      {"v3", fails(v3.Label()), v1.Label() + ", which goes before " + other.Label() + ": it comes first in the spec; " + v3.Label() + " would come first: it fails"},
		"all but one fail":     {"v3", fails(v3.Label(), v1.Label()), other.Label() + ", the only one that fits and has passed; " + v3.Label() + " would come first: it fails; and 1 more would come first"},
		"nothing fits or does": {"v3", fails(v3.Label(), v1.Label(), other.Label()), "no engine; " + v3.Label() + " would come first: it fails; and 2 more would come first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := policy.Choose(registrytest.Node(c.level), ranked, c.unmet).String(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
