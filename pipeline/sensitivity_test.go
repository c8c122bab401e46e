//go:build cgo

package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
)

// nodes is what the quantizer says of three nodes, the costliest first, when there are this many to try.
func nodes(of int) string {
	return fmt.Sprintf(`{"sensitivity": {"snr_db": 1, "of": %d, "nodes": [
		{"node": "a", "operator": "MatMul", "snr_db": 5}, {"node": "b", "operator": "MatMul", "snr_db": 119.9},
		{"node": "c", "operator": "MatMul", "snr_db": 120}]}}`, of)
}

// An int8 engine that fails gets the shortest list of nodes to leave in full precision, found by building it
// so, and the error quotes it for the spec.
func TestSensitivity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needed     []string // with these in full precision the engine keeps its limits
		of         int
		exclude    []string
		unfinished bool
		hint       string
	}{
		"one node":               {[]string{"a"}, 3, []string{"a"}, false, "write quantize: {method: dynamic, exclude: [a]}"},
		"two nodes":              {[]string{"a", "b"}, 3, []string{"a", "b"}, false, "write quantize: {method: dynamic, exclude: [a, b]}"},
		"most of the nodes":      {[]string{"a", "b"}, 2, nil, false, "only such suffice as have all layers with weights or more than two thirds of the nodes"},
		"a node that costs none": {[]string{"c"}, 3, nil, false, "leaving out single nodes does not suffice"},
		"not all were tried":     {[]string{"c"}, 4, nil, true, "the time did not suffice"},
		"nothing to quantize":    {nil, 3, nil, false, "leaving out single nodes does not suffice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 0)
			w.p.Sensitivity = time.Hour
			w.quantize = func(job toolchain.Job) (quantized, error) {
				made := quantized{weight: -1.5, result: nodes(c.of)}
				excluded, _ := job.Options["exclude_nodes"].([]string)
				if c.needed == nil && len(excluded) > 0 {
					return quantized{}, registry.Errorf(registry.CodeInvalid, "no node is left to quantize")
				}
				if c.needed == nil {
					return made, nil
				}
				if !slices.ContainsFunc(c.needed, func(n string) bool { return !slices.Contains(excluded, n) }) {
					made.weight = 1.5
				}
				return made, nil
			}
			built := w.built(t, digits, build.Options{})
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if hints := strings.Join(registry.Hints(err), "\n"); registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(hints, c.hint) {
				t.Errorf("error %v with the hints %q, want CodeLimit with %q", err, hints, c.hint)
			}
			found := verified.Engines[1].Sensitivity
			if found == nil {
				t.Fatal("no sensitivity, want one")
			}
			if unsuited := strings.Contains(c.hint, "only such suffice"); found.Unsuited != unsuited {
				t.Errorf("unsuited %t, want %t", found.Unsuited, unsuited)
			}
			if !slices.Equal(found.Exclude, c.exclude) || found.Unfinished != c.unfinished || len(found.Nodes) != 3 || found.Of != c.of {
				t.Errorf("%+v, want to exclude %q, unfinished %t, 3 nodes of %d", found, c.exclude, c.unfinished, c.of)
			}
			if verified.Engines[0].Sensitivity != nil {
				t.Errorf("fp32, which passes, has a sensitivity: %+v", verified.Engines[0].Sensitivity)
			}
		})
	}
}

// What cannot be found out is left out: the failure stands anyway. Without time nothing is looked for.
func TestSensitivityLeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		time   time.Duration
		weight float32
	}{
		"the quantizer fails": {time.Hour, -1.5},
		"no time was given":   {0, -1.5},
		"the engine passes":   {time.Hour, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, c.weight)
			built := w.built(t, digits, build.Options{})
			w.p.Sensitivity = c.time
			asked := 0
			w.quantize = func(toolchain.Job) (quantized, error) {
				asked++
				return quantized{}, registry.Errorf(registry.CodeInternal, "it broke")
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if failed := registry.HasCode(err, registry.CodeLimit); failed != (c.weight < 0) {
				t.Errorf("error %v, want CodeLimit if and only if the engine is wrong", err)
			}
			if got := verified.Engines[1].Sensitivity; got != nil {
				t.Errorf("sensitivity %+v, want none", got)
			}
			if want := c.time > 0 && c.weight < 0; (asked > 0) != want {
				t.Errorf("the quantizer was asked %d times, want any: %t", asked, want)
			}
		})
	}
}

// costly is a world whose int8 engine fails as long as the node a is quantized.
func costly(t *testing.T) *world {
	t.Helper()
	w := setup(t, 0)
	w.quantize = func(job toolchain.Job) (quantized, error) {
		made := quantized{weight: -1.5, result: nodes(3)}
		if excluded, _ := job.Options["exclude_nodes"].([]string); slices.Contains(excluded, "a") {
			made.weight = 1.5
		}
		return made, nil
	}
	return w
}

// What was found when the time is over is said, and that there may be more.
func TestSensitivityEndsInTime(t *testing.T) {
	t.Parallel()
	w := costly(t)
	built := w.built(t, digits, build.Options{})
	w.p.Sensitivity = time.Nanosecond
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if !registry.HasCode(err, registry.CodeLimit) {
		t.Fatalf("error %v, want CodeLimit", err)
	}
	if found := verified.Engines[1].Sensitivity; found == nil || !found.Unfinished || len(found.Exclude) != 0 {
		t.Errorf("sensitivity %+v, want one that is unfinished and excludes nothing", found)
	}
}

// Engines that were made alike fail for the same nodes, which is looked for and said once.
func TestSensitivityIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := costly(t)
	built := w.built(t, strings.Replace(digits, "[linux/amd64/v1]", "[linux/amd64/v1, linux/amd64/v2]", 1), build.Options{})
	w.p.Sensitivity = time.Hour
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	explained := 0
	for _, e := range verified.Engines {
		if e.Sensitivity != nil {
			explained++
		}
	}
	if explained != 2 {
		t.Skipf("%d int8 engines run on this machine, and 2 are compared", explained)
	}
	if said := strings.Count(strings.Join(registry.Hints(err), "\n"), "keeps its limits with these nodes in full precision"); said != 1 {
		t.Errorf("the nodes are named %d times for two engines, want once: %q", said, registry.Hints(err))
	}
}
