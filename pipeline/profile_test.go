//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// A profile without operators says that the runtime has none, and a run that fails is an error and not such a profile.
func TestProfile(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built, err := build.Build(t.Context(), w.p, w.spec(t, twoTargets), build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ref := registry.Ref{Environment: "staging", Model: built.Release.Model, Digest: built.Release.Digest}
	profile, err := diagnose.Profile(t.Context(), w.p, ref, narrow+"/fp32")
	if err != nil || profile.Engine != narrow+"/fp32" || !strings.Contains(profile.Missing, "does not say what its operators take") {
		t.Errorf("profile %+v, error %v; want that there are no operators", profile, err)
	}
	w.run = func(job toolchain.Job, _ string) error {
		if job.Verb == toolchain.VerbRun {
			return errInjected
		}
		return nil
	}
	if profile, err := diagnose.Profile(t.Context(), w.p, ref, narrow+"/fp32"); !errors.Is(err, errInjected) {
		t.Errorf("a run that fails: profile %+v, error %v; want that error", profile, err)
	}
}

// profiling is a runtime that says where the time of a profiled run goes.
type profiling struct {
	linear
	profile toolchain.RunProfile
}

func (p profiling) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	outcome, err := p.linear.Do(ctx, job, outDir)
	if err != nil || job.Verb != toolchain.VerbRun || job.Run.Profile == 0 {
		return outcome, err
	}
	result, err := outcome.RunResult(*job.Run)
	if err != nil {
		return outcome, err
	}
	for i := range result.Engines {
		result.Engines[i].Profile = &p.profile
	}
	outcome.Result, err = json.Marshal(result)
	return outcome, err
}

// Operators are listed with the longest first, each kind with all of its nodes, and copies between devices apart.
func TestProfileOfOperators(t *testing.T) {
	t.Parallel()
	w := setupOn(t, profiling{profile: toolchain.RunProfile{
		Runs: 20, RunNS: 120, Load: []toolchain.ProfileTime{{Name: "session", TimeNS: 7}},
		Operators: []toolchain.OperatorTime{
			{Node: "first", Operator: "Gemm", Provider: "CPU", TimeNS: 20}, {Node: "copy", Operator: "MemcpyToHost", Provider: "CUDA", TimeNS: 10},
			{Node: "second", Operator: "Gemm", Provider: "CUDA", TimeNS: 30}, {Node: "last", Operator: "Softmax", Provider: "CPU", TimeNS: 40},
		},
	}}, 1.5)
	built := w.built(t, twoTargets, build.Options{})
	found, err := diagnose.Profile(t.Context(), w.p, built.Ref, narrow+"/fp32")
	if err != nil {
		t.Fatal(err)
	}
	if found.Runs != 20 || found.RunNS != 120 || found.OperatorsNS != 90 || found.CopiesNS != 10 || found.Missing != "" || len(found.Load) != 1 || found.P50NS == 0 {
		t.Errorf("profile %+v, want 20 runs of 120 ns with 90 ns of operators and 10 ns of copies", found)
	}
	nodes := []diagnose.ProfiledNode{
		{Node: "last", Operator: "Softmax", Provider: "CPU", Count: 1, TimeNS: 40, Share: 0.4},
		{Node: "second", Operator: "Gemm", Provider: "CUDA", Count: 1, TimeNS: 30, Share: 0.3},
		{Node: "first", Operator: "Gemm", Provider: "CPU", Count: 1, TimeNS: 20, Share: 0.2},
		{Node: "copy", Operator: "MemcpyToHost", Provider: "CUDA", Count: 1, TimeNS: 10, Share: 0.1},
	}
	kinds := []diagnose.ProfiledNode{
		{Operator: "Gemm", Count: 2, TimeNS: 50, Share: 0.5}, // of two providers, so of none
		{Operator: "Softmax", Provider: "CPU", Count: 1, TimeNS: 40, Share: 0.4},
		{Operator: "MemcpyToHost", Provider: "CUDA", Count: 1, TimeNS: 10, Share: 0.1},
	}
	if !reflect.DeepEqual(found.Nodes, nodes) || !reflect.DeepEqual(found.Kinds, kinds) {
		t.Errorf("nodes %+v and kinds %+v, want %+v and %+v", found.Nodes, found.Kinds, nodes, kinds)
	}
	if most, ok := found.Bottleneck(); !ok || most != nodes[0] {
		t.Errorf("bottleneck %+v, %t, want %+v", most, ok, nodes[0])
	}
	if most, ok := (diagnose.Profiled{}).Bottleneck(); ok {
		t.Errorf("bottleneck of no operators: %+v, want none", most)
	}
	if _, err := diagnose.Profile(t.Context(), w.p, built.Ref, "int4"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("an engine that is not there: error %v, want CodeNotFound", err)
	}
}
