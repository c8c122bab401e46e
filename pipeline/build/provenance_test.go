package build

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A commit is written as SLSA does; what is not known is left out.
func TestRepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		git   evidence.GitOrigin
		uri   string
		notes map[string]any
	}{
		"all":     {evidence.GitOrigin{Commit: "c0ffee", State: "clean", Ref: "refs/heads/main", Repository: "https://a.example/b"}, "git+https://a.example/b", map[string]any{"state": "clean", "ref": "refs/heads/main"}},
		"a clone": {evidence.GitOrigin{Commit: "c0ffee"}, "", map[string]any{"state": "unknown"}},
	} {
		got := repository(c.git)
		if got.URI != c.uri || fmt.Sprint(got.Annotations) != fmt.Sprint(c.notes) || got.Digest["gitCommit"] != "c0ffee" || got.Name != "repository" {
			t.Errorf("%s: got %+v, want %s with %v", name, got, c.uri, c.notes)
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
	var b making
	b.Inputs.Calibration.Files = []toolchain.Input{calibration}
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
			got := calibrationOf(b, r, BuiltEngine{steps: []run.Step{{Job: toolchain.Job{Inputs: c.inputs}}}})
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
	var b making
	b.Plan.Source = main
	b.Inputs.Model = []toolchain.Input{{Digest: main}, {Digest: weights}}
	if diff := cmp.Diff([]registry.Digest{weights}, otherSources(b)); diff != "" {
		t.Errorf("a model with external data: %s", diff)
	}
	b.Plan.Import = &plan.Import{Files: []plan.File{{Digest: main}, {Digest: weights}}}
	b.Inputs.Model = []toolchain.Input{{Digest: digest.FromString("imported.onnx")}}
	if diff := cmp.Diff([]registry.Digest{weights}, otherSources(b)); diff != "" {
		t.Errorf("an imported source: %s", diff)
	}
}

// An engine's dependencies name the lock of everything that made it, by what kind of install that was, and each tuning record.
func TestProvenanceNamesTools(t *testing.T) {
	t.Parallel()
	d := digest.FromString
	plain := BuiltEngine{Engine: artifact.Engine{Toolchain: artifact.Toolchain{Lock: d("lock")}}}
	with := func(change func(*BuiltEngine)) BuiltEngine {
		e := plain
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		engine BuiltEngine
		want   []string
	}{
		"nothing is locked":  {BuiltEngine{}, nil},
		"a lock file":        {plain, []string{"toolchain lock"}},
		"an image":           {with(func(e *BuiltEngine) { e.Tool.Identity.Image = d("image") }), []string{"toolchain image"}},
		"packages of a host": {with(func(e *BuiltEngine) { e.Tool.Identity.Adopted = true }), []string{"toolchain packages"}},
		"a quantizer": {with(func(e *BuiltEngine) { e.planned.Quantizer = &artifact.Toolchain{Lock: d("q")} }),
			[]string{"toolchain lock", "quantizer lock"}},
		"a quantizer without a lock": {with(func(e *BuiltEngine) { e.planned.Quantizer = &artifact.Toolchain{} }), []string{"toolchain lock"}},
		"a compressor": {with(func(e *BuiltEngine) { e.planned.Compressor = &artifact.Toolchain{Lock: d("c")} }),
			[]string{"toolchain lock", "compressor lock"}},
		"a compressor without a lock": {with(func(e *BuiltEngine) { e.planned.Compressor = &artifact.Toolchain{} }), []string{"toolchain lock"}},
		"records": {with(func(e *BuiltEngine) {
			e.steps = []run.Step{{Job: toolchain.Job{Inputs: []toolchain.Input{{Role: toolchain.RoleModel, Name: "model.onnx"}, {Role: toolchain.RoleTuning, Name: "cache.bin"}}}}}
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
	var b making
	b.env = &run.Env{}
	b.Inputs.Assets, b.Inputs.Operators, b.Inputs.Cases.Files = files("asset", 2), files("lib", 1), files("case", maxNamed+1)
	b.Inputs.Program = &files("score", 1)[0]
	b.Inputs.Model = files("model", 2)
	b.Plan.Source = b.Inputs.Model[0].Digest
	b.origin = &evidence.Origin{Git: evidence.GitOrigin{Commit: "c0ffee"}}
	count := make(map[string]int)
	for _, r := range dependencies(b, artifact.Release{}) {
		kind, _, _ := strings.Cut(r.Name, " ")
		count[kind]++
	}
	want := map[string]int{"source": 2, "sources": 1, "limits": 1, "interface": 1, "asset": 2, "operators": 1, "program": 1, "cases": maxNamed, "repository": 1}
	if diff := cmp.Diff(want, count); diff != "" { // "source" and "source file" are two
		t.Error(diff)
	}
	b.origin, b.Inputs.Program = nil, nil
	for _, r := range dependencies(b, artifact.Release{}) {
		if r.Name == "repository" || strings.HasPrefix(r.Name, "program") {
			t.Errorf("got %s of a build without it", r.Name)
		}
	}
}

// A source that was fetched has its place on the server.
func TestProvenanceNamesTheServer(t *testing.T) {
	t.Parallel()
	var b making
	b.env = &run.Env{}
	b.Plan.Source = digest.FromString("model")
	b.Inputs.Imported.Origin = &spec.Origin{URI: "mlflow:models:/a/1", Server: "https://mlflow.example", Run: "abc", Digest: "sha256:1"}
	want := run.Resource{Name: "source", URI: "mlflow:models:/a/1", Digest: evidence.NewDigestSet(b.Plan.Source),
		Annotations: map[string]any{"server": "https://mlflow.example", "run": "abc", "digest": "sha256:1"}}
	if diff := cmp.Diff(want, dependencies(b, artifact.Release{})[0]); diff != "" {
		t.Error(diff)
	}
}

// An engine's provenance has a field for what it has: compression, a census, providers and an import are said where they are there.
func TestProvenanceOfAnEngine(t *testing.T) {
	t.Parallel()
	var b making
	b.env = &run.Env{}
	b.Inputs.Students = map[string]*plan.Student{"small": {Written: "small.onnx", Files: []toolchain.Input{{Name: "model.onnx"}}}}
	engine := func(variant string) BuiltEngine {
		e := BuiltEngine{Engine: artifact.Engine{Variant: variant}}
		e.planned.Variant = variant
		return e
	}
	fields := func(b making, e BuiltEngine) (internal, external, dependencies []string) {
		said := provenance(b, stored{}, e)
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
	imported.Inputs.Model = []toolchain.Input{{Name: "model.onnx"}}
	imported.Plan.Import = &plan.Import{Toolchain: artifact.Toolchain{Lock: digest.FromString("lock")}}
	imported.Inputs.Imported.Plan = imported.Plan.Import
	unlocked := imported
	unlocked.Plan.Import = &plan.Import{}
	compressed, provided := engine("fp32"), engine("fp32")
	compressed.compression, compressed.census = &Compression{}, &evidence.Census{}
	provided.Engine.Providers = []artifact.Provider{{Name: "CPUExecutionProvider"}}
	for name, c := range map[string]struct {
		b                                making
		e                                BuiltEngine
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
