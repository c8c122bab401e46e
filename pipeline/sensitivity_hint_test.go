package pipeline

import (
	"errors"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

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
	}
	failures := make([]error, len(found))
	for i := range failures {
		failures[i] = registry.Errorf(registry.CodeLimit, "engine %d fails", i)
	}
	hints(found, failures)
	want := []string{
		"variant int8 keeps its limits with these nodes in full precision: write quantize: {exclude: [a]}",
		"variant int8: this model does not take int8: more than two thirds of its graph nodes would have to stay in full precision: use fp16 or fp32, or try tool nncf with accuracy_aware",
		"variant int8: the time did not suffice to find the nodes that have to stay in full precision: give it more, such as --sensitivity 30m",
		"variant other keeps its limits with these nodes in full precision: write quantize: {exclude: [a]}",
		"variant other: leaving out single nodes does not suffice: try method dynamic, tool nncf with accuracy_aware, or fp16",
	}
	if got := registry.Hints(errors.Join(failures...)); !slices.Equal(got, want) {
		t.Errorf("hints %q, want %q", got, want)
	}
}
