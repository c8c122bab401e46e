package policy_test

import (
	"maps"
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
