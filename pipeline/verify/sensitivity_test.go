package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// How an engine was made is read from the provenance of a trusted builder about it, and from nothing else.
func TestHowMade(t *testing.T) {
	t.Parallel()
	r := enginesOf([2]string{"x", "fp32"}, [2]string{"x", "int8"})
	said := func(engine registry.Digest, method string, edit func(*evidence.Claim)) evidence.Claim {
		return reported(t, engine, evidence.VerdictPass, 1, func(c *evidence.Claim) {
			c.Roles, c.Statement.PredicateType = []evidence.Role{evidence.RoleBuilder}, evidence.PredicateProvenance
			c.Statement.Predicate = fmt.Appendf(nil, `{"buildDefinition": {"internalParameters": {"made": {"quantize": {"method": %q}}}}}`, method)
			if edit != nil {
				edit(c)
			}
		})
	}
	of := r.Engines[0].Digest
	for name, c := range map[string]struct {
		claims []evidence.Claim
		method string
		ok     bool
	}{
		"nothing":                 {nil, "", false},
		"of it":                   {[]evidence.Claim{said(of, "static", nil)}, "static", true},
		"behind that of another":  {[]evidence.Claim{said(r.Engines[1].Digest, "other", nil), said(of, "static", nil)}, "static", true},
		"of another":              {[]evidence.Claim{said(r.Engines[1].Digest, "other", nil)}, "", false},
		"another statement of it": {[]evidence.Claim{reported(t, of, evidence.VerdictPass, 1, nil)}, "", false},
		"said by a verifier":      {[]evidence.Claim{said(of, "static", func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RoleVerifier} })}, "", false},
		"that cannot be read":     {[]evidence.Claim{said(of, "static", func(c *evidence.Claim) { c.Statement.Predicate = []byte(`{"buildDefinition": 3}`) })}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Session{Subject: Subject{Release: r, Claims: c.claims}}
			made, ok := HowMade(v, of)
			if method, _ := made.Quantize["method"].(string); ok != c.ok || method != c.method {
				t.Errorf("got %+v, %t; want %q, %t", made, ok, c.method, c.ok)
			}
		})
	}
}

// What is proposed for an engine asks for all that it was made with, and for nothing that
// follows from its target.
func TestProposedQuantize(t *testing.T) {
	t.Parallel()
	plain := artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64"}}
	vnni := artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64", Features: []string{"avx512_vnni"}}}
	for want, c := range map[string]struct {
		options map[string]any
		target  artifact.Target
	}{
		"{method: static, exclude: [a]}": {map[string]any{"method": "static-int8", "observer": "minmax", "reduce_range": true}, plain},
		"{method: static, observer: percentile, percentile: 99.9%, exclude: [a]}": {
			map[string]any{"method": "static-int8", "observer": "percentile", "percentile": 99.9, "reduce_range": false}, vnni},
		"{method: dynamic, per_channel: true, reduce_range: false, exclude: [a]}": {
			map[string]any{"method": "dynamic-int8", "per_channel": true, "reduce_range": false}, plain},
		"{method: dynamic, reduce_range: true, exclude: [a]}": {map[string]any{"method": "dynamic-int8", "reduce_range": true}, vnni},
	} {
		if got := specQuantize(c.options, c.target, []string{"a"}).Flow(); got != want {
			t.Errorf("%v: %s, want %s", c.options, got, want)
		}
	}
}

// What there is to do is said once where engines of several runtimes fail for the same nodes, and of each where it differs.
func TestHintsOnce(t *testing.T) {
	t.Parallel()
	found := []VerifiedEngine{
		{Sensitivity: &Sensitivity{Variant: "int8", Quantize: "{exclude: [a]}"}},
		{},
		{Sensitivity: &Sensitivity{Variant: "int8", Quantize: "{exclude: [a]}"}},
		{Sensitivity: &Sensitivity{Variant: "int8", Unsuited: true}},
		{Sensitivity: &Sensitivity{Variant: "int8", Unfinished: true}},
		{Sensitivity: &Sensitivity{Variant: "other", Quantize: "{exclude: [a]}"}},
		{Sensitivity: &Sensitivity{Variant: "other"}},
		{Sensitivity: &Sensitivity{Variant: "scaled", Quantize: "{exclude: [a]}", Unlike: "input x goes from 0 to 1"}},
	}
	failures := make([]error, len(found))
	for i := range failures {
		failures[i] = registry.Errorf(registry.CodeLimit, "engine %d fails", i)
	}
	hints(found, failures)
	want := []string{
		"variant int8 keeps its limits with these nodes in full precision: write quantize: {exclude: [a]}",
		"variant int8: of the tried lists of nodes in full precision, only such suffice as have all layers with weights or more than two thirds of the nodes: use fp16 or fp32, try tool nncf with accuracy_aware, or exclude other nodes, such as a normalization where values become NaN",
		"variant int8: the time did not suffice to find the nodes that have to stay in full precision: give it more, such as --sensitivity 30m",
		"variant other keeps its limits with these nodes in full precision: write quantize: {exclude: [a]}",
		"variant other: leaving out single nodes does not suffice: try method dynamic, tool nncf with accuracy_aware, or fp16",
		"variant scaled was calibrated on other values than it computes: input x goes from 0 to 1: calibrate it on inputs that are prepared as the cases are",
	}
	if got := registry.Hints(errors.Join(failures...)); !slices.Equal(got, want) {
		t.Errorf("hints %q, want %q", got, want)
	}
}

// A hint lists a few nodes, the worst first, and the number of others.
func TestHintOfManyNodes(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	for n, want := range map[int]string{
		5: "variant int8 keeps its limits with these nodes in full precision: write quantize: {exclude: [a, b, c, d, e]}",
		7: "variant int8 keeps its limits with 7 nodes in full precision: a, b, c, d, e, which cost most, and 2 others; " +
			"mlpromote verify --output json has the whole list as engines[].sensitivity.quantize: write it as quantize of the variant, or use fp16",
	} {
		s := Sensitivity{Variant: "int8", Exclude: names[:n], Quantize: "{exclude: [" + strings.Join(names[:n], ", ") + "]}"}
		if got := s.quantization().Hint(); got != want {
			t.Errorf("%d nodes: %q, want %q", n, got, want)
		}
	}
}

// Where every layer with weights would stay in full precision, nothing of int8 is left.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	nodes := []GraphNodeSensitivity{{Node: "a", Operator: "Conv"}, {Node: "b", Operator: "Relu"}, {Node: "c", Operator: "Gemm"}}
	for name, c := range map[string]struct {
		nodes   []GraphNodeSensitivity
		of      int
		exclude []string
		want    bool
	}{
		"all with weights":   {nodes, 3, []string{"a", "c"}, true},
		"one is left":        {nodes, 3, []string{"a", "b"}, false},
		"none is excluded":   {nodes, 3, nil, false},
		"not all were tried": {nodes, 4, []string{"a", "c"}, false},
		"there are none":     {nodes[1:2], 1, []string{"b"}, false},
	} {
		s := Sensitivity{Nodes: c.nodes, Of: c.of, Exclude: c.exclude}
		if got := s.leavesNothing(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
