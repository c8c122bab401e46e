package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// A step says what is known of it, and nothing else.
func TestProvenanceOfAStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step takenStep
		want map[string]any // beside cached, elapsedNs and options
	}{
		"done here": {takenStep{}, map[string]any{}},
		"done by another": {takenStep{outcome: toolchain.Outcome{Cached: true, Origin: toolchain.Origin{Cache: "oci://host/cache",
			Signer: "key"}}}, map[string]any{"cachedIn": "oci://host/cache", "doneBy": "key"}},
		"reproducible":         {takenStep{reproducible: registry.ReproducibleBytes}, map[string]any{"reproducible": registry.ReproducibleBytes}},
		"by a table of ranges": {takenStep{ranges: digest.FromString("table")}, map[string]any{"ranges": digest.FromString("table")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.step.provenance().Annotations
			if got["cached"] != c.step.outcome.Cached {
				t.Errorf("cached is %v, want %t", got["cached"], c.step.outcome.Cached)
			}
			for _, common := range []string{"cached", "elapsedNs", "options"} {
				delete(got, common)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What held a driver is said of the step, and nothing where nobody knows.
func TestProvenanceSaysWhatWasEnforced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		enforced toolchain.Enforced
		want     string
	}{
		{toolchain.Enforced{Sandbox: toolchain.SandboxNamespaces, Inputs: toolchain.InputsReadOnly, NoNetwork: true}, `"noNetwork":true`},
		{toolchain.Enforced{}, ""},
	} {
		step := takenStep{name: "compile", outcome: toolchain.Outcome{Key: digest.FromString("key"), Enforced: c.enforced}}
		said, ok := step.provenance().Annotations["enforced"]
		text, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		if ok != (c.want != "") || ok && !strings.Contains(string(text), c.want) {
			t.Errorf("%+v: provenance says %s", c.enforced, text)
		}
	}
}

// Provenance names the data that an engine was quantized with, and says so where there is none.
func TestProvenanceNamesCalibration(t *testing.T) {
	t.Parallel()
	file := func(role, name string) toolchain.Input {
		return toolchain.Input{Role: role, Name: name, Digest: digest.FromString(name)}
	}
	calibration := file(toolchain.RoleCalibration, "calibration")
	var b build
	b.inputs.Calibration.Files = []toolchain.Input{calibration}
	b.calibrationPart = digest.FromString("part")
	for name, c := range map[string]struct {
		inputs []toolchain.Input
		want   []registry.Digest
	}{
		"none":                  {[]toolchain.Input{file(toolchain.RoleModel, "model")}, []registry.Digest{}},
		"files and part":        {[]toolchain.Input{file(toolchain.RoleModel, "model"), calibration}, []registry.Digest{b.calibrationPart, calibration.Digest}},
		"a table made of them":  {[]toolchain.Input{file(toolchain.RoleRanges, "ranges")}, []registry.Digest{b.calibrationPart, calibration.Digest}},
		"cases, for a search":   {[]toolchain.Input{file(toolchain.RoleCases, "cases")}, []registry.Digest{digest.FromString("cases")}},
		"the same in two steps": {[]toolchain.Input{calibration, calibration}, []registry.Digest{b.calibrationPart, calibration.Digest}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slices.Sort(c.want)
			got := b.calibrationOf(builtEngine{steps: []takenStep{{job: toolchain.Job{Inputs: c.inputs}}}})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every file of a model is a source, and the one that the spec names is not repeated.
func TestProvenanceNamesAllSources(t *testing.T) {
	t.Parallel()
	main, weights := digest.FromString("model.onnx"), digest.FromString("weights.bin")
	var b build
	b.plan.Source = main
	b.inputs.Model = []toolchain.Input{{Digest: main}, {Digest: weights}}
	if diff := cmp.Diff([]registry.Digest{weights}, b.otherSources()); diff != "" {
		t.Errorf("a model with external data: %s", diff)
	}
	b.plan.Import = &plan.Import{Files: []plan.File{{Digest: main}, {Digest: weights}}}
	b.inputs.Model = []toolchain.Input{{Digest: digest.FromString("imported.onnx")}}
	if diff := cmp.Diff([]registry.Digest{weights}, b.otherSources()); diff != "" {
		t.Errorf("an imported source: %s", diff)
	}
}
