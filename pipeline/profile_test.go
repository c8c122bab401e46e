//go:build cgo

package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// A profile without operators says that the runtime has none, and a run that fails is an error and not such a profile.
func TestProfile(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built, err := w.p.Build(t.Context(), w.spec(t, twoTargets), pipeline.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := registry.Ref{Environment: "staging", Model: built.Release.Model, Digest: built.Release.Digest}
	profile, err := w.p.Profile(t.Context(), ref, narrow+"/fp32")
	if err != nil || profile.Engine != narrow+"/fp32" || !strings.Contains(profile.Missing, "does not say what its operators take") {
		t.Errorf("profile %+v, error %v; want that there are no operators", profile, err)
	}
	w.run = func(job toolchain.Job, _ string) error {
		if job.Verb == toolchain.VerbRun {
			return errInjected
		}
		return nil
	}
	if profile, err := w.p.Profile(t.Context(), ref, narrow+"/fp32"); !errors.Is(err, errInjected) {
		t.Errorf("a run that fails: profile %+v, error %v; want that error", profile, err)
	}
}
