package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

// A variant is shortened to its name only if that says everything: how nodes load its engines would be lost.
func TestWrittenVariant(t *testing.T) {
	t.Parallel()
	static := func(observer string) *spec.Quantize {
		return &spec.Quantize{Method: spec.MethodStatic, Observer: observer}
	}
	load := &spec.Loading{Required: true}
	for name, c := range map[string]struct{ variant, want spec.Variant }{
		"the name says it": {
			spec.Variant{Name: "int8", Precision: "int8", Quantize: static(spec.ObserverMinMax)},
			spec.Variant{Name: "int8"},
		},
		"it is loaded in a way of its own": {
			spec.Variant{Name: "int8", Precision: "int8", Quantize: static(spec.ObserverMinMax), Load: load},
			spec.Variant{Name: "int8", Precision: "int8", Quantize: static(""), Load: load},
		},
		"full precision": {spec.Variant{Name: "fp32", Precision: "fp32"}, spec.Variant{Name: "fp32", Precision: "fp32"}},
		"full precision, loaded in a way of its own": {
			spec.Variant{Name: "fp32", Precision: "fp32", Load: load},
			spec.Variant{Name: "fp32", Precision: "fp32", Load: load},
		},
		"another name": {
			spec.Variant{Name: "small", Precision: "int8", Quantize: static(spec.ObserverMinMax)},
			spec.Variant{Name: "small", Precision: "int8", Quantize: static("")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, c.variant.Written()); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

// An objective names one goal, in either direction.
func TestObjectives(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{max: throughput}": spec.GoalThroughput, "{min: size}": spec.GoalSize, "{min: latency}": spec.GoalLatency,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, small+"objective: "+text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Objective.Goal(); got != want {
				t.Errorf("goal %q, want %q", got, want)
			}
		})
	}
}
