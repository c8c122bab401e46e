package pipeline

import (
	"encoding/json"
	"fmt"
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
	r := stored{calibration: digest.FromString("part")}
	for name, c := range map[string]struct {
		inputs []toolchain.Input
		want   []registry.Digest
	}{
		"none":                  {[]toolchain.Input{file(toolchain.RoleModel, "model")}, []registry.Digest{}},
		"files and part":        {[]toolchain.Input{file(toolchain.RoleModel, "model"), calibration}, []registry.Digest{r.calibration, calibration.Digest}},
		"a table made of them":  {[]toolchain.Input{file(toolchain.RoleRanges, "ranges")}, []registry.Digest{r.calibration, calibration.Digest}},
		"cases, for a search":   {[]toolchain.Input{file(toolchain.RoleCases, "cases")}, []registry.Digest{digest.FromString("cases")}},
		"the same in two steps": {[]toolchain.Input{calibration, calibration}, []registry.Digest{r.calibration, calibration.Digest}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slices.Sort(c.want)
			got := b.calibrationOf(r, builtEngine{steps: []takenStep{{job: toolchain.Job{Inputs: c.inputs}}}})
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

// An engine's dependencies name the lock of everything that made it, by what kind of install that was, and each tuning record.
func TestProvenanceNamesTools(t *testing.T) {
	t.Parallel()
	d := digest.FromString
	plain := builtEngine{engine: registry.Engine{Toolchain: registry.Toolchain{Lock: d("lock")}}}
	with := func(change func(*builtEngine)) builtEngine {
		e := plain
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		engine builtEngine
		want   []string
	}{
		"nothing is locked":  {builtEngine{}, nil},
		"a lock file":        {plain, []string{"toolchain lock"}},
		"an image":           {with(func(e *builtEngine) { e.tool.identity.Image = d("image") }), []string{"toolchain image"}},
		"packages of a host": {with(func(e *builtEngine) { e.tool.identity.Adopted = true }), []string{"toolchain packages"}},
		"a quantizer": {with(func(e *builtEngine) { e.planned.Quantizer = &registry.Toolchain{Lock: d("q")} }),
			[]string{"toolchain lock", "quantizer lock"}},
		"a quantizer without a lock": {with(func(e *builtEngine) { e.planned.Quantizer = &registry.Toolchain{} }), []string{"toolchain lock"}},
		"a compressor": {with(func(e *builtEngine) { e.planned.Compressor = &registry.Toolchain{Lock: d("c")} }),
			[]string{"toolchain lock", "compressor lock"}},
		"a compressor without a lock": {with(func(e *builtEngine) { e.planned.Compressor = &registry.Toolchain{} }), []string{"toolchain lock"}},
		"records": {with(func(e *builtEngine) {
			e.steps = []takenStep{{job: toolchain.Job{Inputs: []toolchain.Input{{Role: toolchain.RoleModel, Name: "model.onnx"}, {Role: toolchain.RoleTuning, Name: "cache.bin"}}}}}
		}), []string{"toolchain lock", "tuning record cache.bin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, r := range c.engine.tools() {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A release depends on its source, cases and what else it is made of: of very many files of cases, the first are named.
func TestProvenanceNamesDependencies(t *testing.T) {
	t.Parallel()
	files := func(prefix string, n int) (all []toolchain.Input) {
		for i := range n {
			all = append(all, toolchain.Input{Name: fmt.Sprintf("%s%d", prefix, i), Digest: digest.FromString(fmt.Sprint(prefix, i))})
		}
		return all
	}
	var b build
	b.p = &Pipeline{}
	b.inputs.Assets, b.inputs.Operators, b.inputs.Cases.Files = files("asset", 2), files("lib", 1), files("case", maxNamed+1)
	b.inputs.program = &files("score", 1)[0]
	b.inputs.Model = files("model", 2)
	b.plan.Source = b.inputs.Model[0].Digest
	b.origin = &registry.Origin{Git: registry.GitOrigin{Commit: "c0ffee"}}
	count := make(map[string]int)
	for _, r := range b.dependencies(registry.Release{}) {
		kind, _, _ := strings.Cut(r.Name, " ")
		count[kind]++
	}
	want := map[string]int{"source": 2, "sources": 1, "limits": 1, "interface": 1, "asset": 2, "operators": 1, "program": 1, "cases": maxNamed, "repository": 1}
	if diff := cmp.Diff(want, count); diff != "" { // "source" and "source file" are two
		t.Error(diff)
	}
	b.origin, b.inputs.program = nil, nil
	for _, r := range b.dependencies(registry.Release{}) {
		if r.Name == "repository" || strings.HasPrefix(r.Name, "program") {
			t.Errorf("got %s of a build without it", r.Name)
		}
	}
}

// An engine's provenance has a field for what it has: compression, a census, providers and an import are said where they are there.
func TestProvenanceOfAnEngine(t *testing.T) {
	t.Parallel()
	var b build
	b.p = &Pipeline{}
	b.inputs.students = map[string]*plan.Student{"small": {Written: "small.onnx", Files: []toolchain.Input{{Name: "model.onnx"}}}}
	engine := func(variant string) builtEngine {
		e := builtEngine{engine: registry.Engine{Variant: variant}}
		e.planned.Variant = variant
		return e
	}
	fields := func(b build, e builtEngine) (internal, external, dependencies []string) {
		said := b.provenance(stored{}, e)
		for _, name := range []string{"compression", "operators", "importer"} {
			if _, ok := said.BuildDefinition.InternalParameters[name]; ok {
				internal = append(internal, name)
			}
		}
		if _, ok := said.BuildDefinition.ExternalParameters["providers"]; ok {
			external = append(external, "providers")
		}
		for _, r := range said.BuildDefinition.ResolvedDependencies {
			if strings.HasPrefix(r.Name, "student") || strings.HasPrefix(r.Name, "import") {
				dependencies = append(dependencies, r.Name)
			}
		}
		return internal, external, dependencies
	}
	imported := b
	imported.inputs.Model = []toolchain.Input{{Name: "model.onnx"}}
	imported.plan.Import = &plan.Import{Toolchain: registry.Toolchain{Lock: digest.FromString("lock")}}
	imported.inputs.imported.plan = imported.plan.Import
	unlocked := imported
	unlocked.plan.Import = &plan.Import{}
	compressed, provided := engine("fp32"), engine("fp32")
	compressed.compression, compressed.census = &Compression{}, &registry.Census{}
	provided.engine.Providers = []registry.Provider{{Name: "CPUExecutionProvider"}}
	for name, c := range map[string]struct {
		b                                build
		e                                builtEngine
		internal, external, dependencies []string
	}{
		"nothing more":       {b, engine("fp32"), nil, nil, nil},
		"a student":          {b, engine("small"), nil, nil, []string{"student model.onnx"}},
		"compressed":         {b, compressed, []string{"compression", "operators"}, nil, nil},
		"providers":          {b, provided, nil, []string{"providers"}, nil},
		"imported":           {imported, engine("fp32"), []string{"importer"}, nil, []string{"imported model", "importer lock"}},
		"imported, unlocked": {unlocked, engine("fp32"), []string{"importer"}, nil, []string{"imported model"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			internal, external, dependencies := fields(c.b, c.e)
			if !slices.Equal(internal, c.internal) || !slices.Equal(external, c.external) || !slices.Equal(dependencies, c.dependencies) {
				t.Errorf("got %q, %q, %q; want %q, %q, %q", internal, external, dependencies, c.internal, c.external, c.dependencies)
			}
		})
	}
}

// What an importer did is said where one ran.
func TestImporterInProvenance(t *testing.T) {
	t.Parallel()
	if got := (importedModel{}).importer(); got != nil {
		t.Errorf("without an import: got %v, want nothing", got)
	}
	m := importedModel{plan: &plan.Import{}, identity: toolchain.Identity{Name: "torch"}}
	m.step.outcome.Result = json.RawMessage(`{"opset": 17}`)
	text, err := json.Marshal(m.importer())
	if err != nil || !strings.Contains(string(text), `"torch"`) || !strings.Contains(string(text), `{"opset":17}`) {
		t.Errorf("got %s, error %v; want the tool and what it said", text, err)
	}
}
