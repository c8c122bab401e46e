package pipeline

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// What each layer costs is asked of the quantizer that made the engine: it has to be ONNX Runtime's, to int8, and nothing before it.
func TestHasLayerCosts(t *testing.T) {
	t.Parallel()
	by := func(name, method string) howMade {
		return howMade{Quantizer: &registry.Toolchain{Name: name}, Quantize: map[string]any{"method": method}}
	}
	compressed := by(onnxRuntime, plan.MethodStatic)
	compressed.Compress = []map[string]any{{"prune": 0.5}}
	student := by(onnxRuntime, plan.MethodStatic)
	student.Student = []plan.File{{}}
	for name, c := range map[string]struct {
		made howMade
		ok   bool
	}{
		"static": {by(onnxRuntime, plan.MethodStatic), true}, "dynamic": {by(onnxRuntime, plan.MethodDynamic), true},
		"another method": {by(onnxRuntime, "weights"), false}, "another quantizer": {by("nncf", plan.MethodStatic), false},
		"not quantized": {howMade{Quantize: map[string]any{"method": plan.MethodStatic}}, false},
		"compressed":    {compressed, false}, "a student": {student, false}, "no method": {howMade{Quantizer: &registry.Toolchain{Name: onnxRuntime}}, false},
	} {
		if err := hasLayerCosts(candidate{}, c.made); (err == nil) != c.ok || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want that it can be asked: %t", name, err, c.ok)
		}
	}
}

// The graph of a model is its .onnx file, wherever it stands among the files; a model without one has its first file.
func TestGraphOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ files, want string }{
		{"model.onnx", "model.onnx"}, {"weights.bin model.onnx", "model.onnx"}, {"a.onnx weights.bin", "a.onnx"}, {"weights.bin other", "weights.bin"},
	} {
		var model []toolchain.Input
		for _, name := range strings.Fields(c.files) {
			model = append(model, toolchain.Input{Name: name})
		}
		if got := graphOf(model); got.entry != c.want || len(got.inputs) != len(model) {
			t.Errorf("%s: got %s with %d files, want %s", c.files, got.entry, len(got.inputs), c.want)
		}
	}
}

// What is missing is listed with its runner, and each target is in the hint once.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	w := wantedParts{common: plan.Plan{Model: "a/b", Version: "1.0.0"}, asked: make([]plan.Requested, 3)}
	err := incomplete(w, AssembleResult{
		Missing: []MissingEngine{{"x/fp32", "x", "gpu"}, {"x/int8", "x", "gpu"}, {"y/fp32", "y", ""}},
		Aside:   []SetAside{{Part: "sha256:1", Reason: "it is of another commit"}},
	})
	want := "a/b 1.0.0 is not complete: of 3 engines, no part has these 3: x/fp32 (runner gpu), x/int8 (runner gpu), y/fp32\n  set aside: sha256:1: it is of another commit"
	if err.Error() != want || !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("got %q, want %q", err, want)
	}
	if hint := strings.Join(registry.Hints(err), "\n"); !strings.Contains(hint, "--target x,y where") {
		t.Errorf("hint %q, want each target once", hint)
	}
}

// A commit is written as SLSA does; what is not known is left out.
func TestRepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		git   registry.GitOrigin
		uri   string
		notes map[string]any
	}{
		"all":     {registry.GitOrigin{Commit: "c0ffee", State: "clean", Ref: "refs/heads/main", Repository: "https://a.example/b"}, "git+https://a.example/b", map[string]any{"state": "clean", "ref": "refs/heads/main"}},
		"a clone": {registry.GitOrigin{Commit: "c0ffee"}, "", map[string]any{"state": "unknown"}},
	} {
		got := repository(c.git)
		if got.URI != c.uri || fmt.Sprint(got.Annotations) != fmt.Sprint(c.notes) || got.Digest["gitCommit"] != "c0ffee" || got.Name != "repository" {
			t.Errorf("%s: got %+v, want %s with %v", name, got, c.uri, c.notes)
		}
	}
}

// Times are not those of a target where the processor is emulated, or where the processor ran what was meant for a device.
func TestFitnessFor(t *testing.T) {
	t.Parallel()
	providers := func(names ...string) (all []registry.Provider) {
		for _, n := range names {
			all = append(all, registry.Provider{Name: n})
		}
		return all
	}
	shares := func(names ...string) (all []registry.ProviderShare) {
		for _, n := range names {
			all = append(all, registry.ProviderShare{Name: n})
		}
		return all
	}
	for name, c := range map[string]struct {
		providers []registry.Provider
		ran       []registry.ProviderShare
		notes     []string
		want      string // part of it
	}{
		"no providers":                   {nil, shares(cpuProvider), nil, ""},
		"of the processor":               {providers(cpuProvider), shares(cpuProvider), nil, ""},
		"of a device, which ran it":      {providers("CUDA", cpuProvider), shares("CUDA", cpuProvider), nil, ""},
		"of a device, which ran nothing": {providers("CUDA", cpuProvider), shares(cpuProvider), nil, "the engine is for CUDA"},
		"of a device, nothing is known":  {providers("CUDA"), nil, nil, ""},
		"emulated":                       {nil, nil, []string{registry.NoteEmulated}, "emulated"},
		"another note":                   {nil, nil, []string{"other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := measured{}.fitnessFor(candidate{engine: registry.Engine{Providers: c.providers}}, registry.Node{Notes: c.notes}, c.ran)
			if (got.Emulated == "") != (c.want == "") || !strings.Contains(got.Emulated, c.want) {
				t.Errorf("got %q, want %q", got.Emulated, c.want)
			}
		})
	}
}

// Values are drawn from what the spec declares, and else from what the graph does with the input.
func TestDraws(t *testing.T) {
	t.Parallel()
	two, five := 2.0, 5.0
	for name, c := range map[string]struct {
		dtype    tensor.DType
		use      format.Use
		declared spec.Draw
		min, max float64
		bounded  bool
		mask     bool
	}{
		"nothing is known":                {dtype: tensor.Float32},
		"a declared range":                {dtype: tensor.Int64, use: format.Use{Rows: 30}, declared: spec.Draw{Min: &two, Max: &five}, min: 2, max: 5, bounded: true},
		"half of a range":                 {dtype: tensor.Float32, declared: spec.Draw{Min: &two}},
		"declared values":                 {dtype: tensor.Int64, use: format.Use{Rows: 30}, declared: spec.Draw{Values: []float64{1, 2}}},
		"rows of an embedding":            {dtype: tensor.Int64, use: format.Use{Rows: 30}, max: 29, bounded: true},
		"more rows than int8 counts":      {dtype: tensor.Int8, use: format.Use{Rows: 300}, max: 127, bounded: true},
		"more rows than half of uint8":    {dtype: tensor.Uint8, use: format.Use{Rows: 300}, max: 127, bounded: true},
		"fewer rows than int8 counts":     {dtype: tensor.Int8, use: format.Use{Rows: 100}, max: 99, bounded: true},
		"rows that fractions do not name": {dtype: tensor.Float32, use: format.Use{Rows: 30}},
		"a mask":                          {dtype: tensor.Int64, use: format.Use{Mask: true}, mask: true},
		"an image":                        {dtype: tensor.Float32, use: format.Use{Image: true}, max: 1, bounded: true},
		"an image of bytes":               {dtype: tensor.Uint8, use: format.Use{Image: true}, max: 255, bounded: true},
		"an image of int8":                {dtype: tensor.Int8, use: format.Use{Image: true}},
		"quantized, uint8":                {dtype: tensor.Uint8, use: format.Use{Quantized: true}, max: 255, bounded: true},
		"quantized, int8":                 {dtype: tensor.Int8, use: format.Use{Quantized: true}, min: -128, max: 127, bounded: true},
		"quantized, of a float":           {dtype: tensor.Float32, use: format.Use{Quantized: true}},
		"int8 of which nothing is known":  {dtype: tensor.Int8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := draw(validators.TensorInfo{DType: c.dtype}, c.use, c.declared)
			if got.Min != c.min || got.Max != c.max || got.Bounded != c.bounded || got.Mask != c.mask || got.Rows != c.use.Rows || !slices.Equal(got.Values, c.declared.Values) {
				t.Errorf("got %+v, want %v to %v, bounded %t, a mask %t", got, c.min, c.max, c.bounded, c.mask)
			}
		})
	}
}

// A tensor is described by its finite values.
func TestSummaryOf(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, c := range map[string]struct {
		values                 []float32
		min, max, mean, spread float64
		others                 int
	}{
		"values":            {[]float32{1, 5, 3}, 1, 5, 3, math.Sqrt(8.0 / 3), 0},
		"beside infinities": {[]float32{float32(math.Inf(1)), 2, float32(math.NaN()), 4}, 2, 4, 3, 1, 2},
		"all the same":      {[]float32{7, 7}, 7, 7, 7, 0, 0},
		"none finite":       {[]float32{float32(math.Inf(-1))}, nan, nan, nan, nan, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summaryOf("x", floats32(t, c.values, int64(len(c.values))))
			for what, pair := range map[string][2]float64{"min": {float64(got.Min), c.min}, "max": {float64(got.Max), c.max},
				"mean": {float64(got.Mean), c.mean}, "spread": {float64(got.Spread), c.spread}} {
				if math.IsNaN(pair[0]) != math.IsNaN(pair[1]) || math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
				}
			}
			if got.Others != c.others || got.Name != "x" || got.DType != "float32" || !slices.Equal(got.Shape, []int64{int64(len(c.values))}) {
				t.Errorf("got %+v, want %d others", got, c.others)
			}
		})
	}
}

// Runs for the tail get their time, unless the budget is fixed or it would be more than there is at most.
func TestTimingOfATail(t *testing.T) {
	t.Parallel()
	start := timing{budget: time.Second, samples: 10}
	longest := int(tailTime / time.Millisecond)
	for name, c := range map[string]struct {
		runs   int
		median time.Duration
		fixed  bool
		want   timing
	}{
		"it fits":                {2000, time.Millisecond, false, timing{2 * time.Second, 2000}},
		"fewer than there are":   {5, time.Millisecond, false, timing{time.Second, 10}},
		"more than fits":         {longest + 1, time.Millisecond, false, timing{tailTime, longest + 1}},
		"exactly what fits":      {longest, time.Millisecond, false, timing{tailTime, longest}},
		"a time of nothing":      {2000, 0, false, timing{tailTime, 2000}},
		"a budget that is fixed": {2000, time.Millisecond, true, timing{time.Second, 2000}},
		"fixed, without a time":  {2000, 0, true, timing{time.Second, 2000}},
	} {
		if got := start.tail(c.runs, c.median, c.fixed); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// Inner tensors of an engine that fails are held to the strictest limit of an output; those of one that is within its limits to
// what its worst output has, and a margin.
func TestLimitOfABisection(t *testing.T) {
	t.Parallel()
	limits := func(a, b float64) validators.Limits {
		return validators.Limits{V: validators.LimitsVersion, Precisions: map[string]validators.PrecisionLimits{"int8": {Outputs: map[string]validators.OutputLimits{
			"a": {SNRdB: &validators.AtLeast{Min: a}}, "b": {SNRdB: &validators.AtLeast{Min: b}}}}}}
	}
	near := floats32(t, []float32{1, 2, 3, 4}, 1, 4)
	off := floats32(t, []float32{1, 2, 3, 4.5}, 1, 4) // 13 dB
	for name, c := range map[string]struct {
		limits validators.Limits
		got    map[string]tensor.Tensor
		inner  map[string]float64
		within bool
		db     float64
		of     string
		ownOfA float64
	}{
		"both within":          {limits(10, 12), map[string]tensor.Tensor{"a": off, "b": off}, map[string]float64{"a": 30, "b": 20}, true, 20 + withinMargin, "b snr", 13},
		"nothing was measured": {limits(10, 12), map[string]tensor.Tensor{"a": off, "b": off}, nil, true, 12, "b snr", 13},
		"one is outside":       {limits(10, 40), map[string]tensor.Tensor{"a": off, "b": off}, map[string]float64{"a": 30, "b": 20}, false, 40, "b snr", 13},
		"the first is outside": {limits(40, 10), map[string]tensor.Tensor{"a": off, "b": off}, map[string]float64{"a": 30, "b": 20}, false, 40, "a snr", 13},
		"one did not run":      {limits(10, 12), map[string]tensor.Tensor{"a": off}, map[string]float64{"a": 30}, false, 12, "b snr", 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bisector{outputs: make(map[string]*summed)}
			b.v.limits, b.c.engine.Precision, b.graph.Outputs = c.limits, "int8", []string{"a", "b"}
			for output, got := range c.got {
				b.outputs[output] = newSummed()
				if err := b.outputs[output].add(0, near, got, false); err != nil {
					t.Fatal(err)
				}
			}
			var found Bisection
			b.limit(&found, c.inner)
			if found.WithinLimit != c.within || math.Abs(float64(found.LimitDB)-c.db) > 1e-9 || found.LimitOf != c.of {
				t.Errorf("within %t, %v dB of %s; want %t, %v of %s", found.WithinLimit, found.LimitDB, found.LimitOf, c.within, c.db, c.of)
			}
			if len(found.Outputs) != 2 || math.Abs(float64(found.Outputs[0].SNRdB)-c.ownOfA) > 0.5 {
				t.Errorf("outputs %+v, want about %v dB of the first", found.Outputs, c.ownOfA)
			}
		})
	}
}

// A regression is compared by limits that ask for it, on cases with labels.
func TestComparesAccuracy(t *testing.T) {
	t.Parallel()
	asked := &validators.AccuracyLimit{Regression: &validators.AtMost{}}
	for name, c := range map[string]struct {
		limit  *validators.AccuracyLimit
		labels string
		want   bool
	}{
		"as asked": {asked, "label", true}, "no accuracy": {nil, "label", false},
		"no regression": {&validators.AccuracyLimit{}, "label", false}, "no labels": {asked, "", false},
	} {
		v := verification{}
		v.limits = validators.Limits{V: validators.LimitsVersion, Accuracy: c.limit}
		v.cases.set = &registry.CaseSet{Labels: c.labels}
		if got := v.comparesAccuracy(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// Records that a compiler leaves in the folder for them are no files of the engine; a given record comes first.
func TestTakeRecords(t *testing.T) {
	t.Parallel()
	files := []toolchain.OutputFile{{Name: "model.bin"}, {Name: toolchain.TuningFolder + "/a.json"}, {Name: toolchain.TuningFolder + "x"}}
	for _, given := range []*plan.Tuning{nil, {Input: toolchain.Input{Name: "given.json", Size: 7}}} {
		var e builtEngine
		e.engine.Target.Name = "x"
		e.takeRecords(given, files)
		names := func() (all []string) {
			for _, r := range e.records {
				all = append(all, fmt.Sprintf("%s %t %t %s", r.file.Name, r.settled, r.given != nil, r.target))
			}
			return all
		}()
		want := []string{"a.json true false x"}
		if given != nil {
			want = append([]string{"given.json false true x"}, want...)
		}
		if !slices.Equal(names, want) || len(e.files) != 2 {
			t.Errorf("given %t: records %q and %d files, want %q and 2", given != nil, names, len(e.files), want)
		}
	}
}

// A record of tuning is good for the version of the toolchain and the target that it was made for; what the spec names takes its place.
func TestTuningOf(t *testing.T) {
	t.Parallel()
	record := func(name, version, target string) tuningRecord {
		return tuningRecord{toolchain: registry.Toolchain{Name: name, Version: version}, target: target, file: toolchain.OutputFile{Name: name + version + target, Size: 3}}
	}
	m := maker{worker: worker{}}
	m.learned.records = []tuningRecord{record("a", "1", "x"), record("b", "1", "x"), record("a", "2", "x"), record("a", "1", "y"), record("b", "2", "x")}
	planned := plan.Engine{Toolchain: registry.Toolchain{Name: "a", Version: "1"}, Target: registry.Target{Name: "x"}}
	got := m.tuning(planned)
	if len(got) != 1 || got[0].Name != "a1x" || got[0].Role != toolchain.RoleTuning || got[0].Size != 3 {
		t.Errorf("got %+v, want the record a1x", got)
	}
	planned.Tuning = &plan.Tuning{Input: toolchain.Input{Name: "given"}}
	if got := m.tuning(planned); len(got) != 1 || got[0].Name != "given" {
		t.Errorf("got %+v, want what the spec names", got)
	}
}

// Files that a compiler leaves are looked at: one that runs code when it is loaded is refused, whichever it is.
func TestCheckMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) toolchain.OutputFile {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return toolchain.OutputFile{Name: name, Path: path}
	}
	const pickle = "\x80\x04]\x94."
	profile := toolchain.Profile{Format: "openvino-ir", Entry: "model.xml"}
	native := profile
	native.NativeCode = true
	plain, code, elf := write("a.txt", "hello"), write("b.bin", pickle), write("c.so", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 57))
	for name, c := range map[string]struct {
		profile toolchain.Profile
		files   []toolchain.OutputFile
		ok      bool
	}{
		"nothing": {profile, nil, true}, "text": {profile, []toolchain.OutputFile{plain}, true}, "a pickle": {profile, []toolchain.OutputFile{code}, false},
		"a pickle behind text": {profile, []toolchain.OutputFile{plain, code}, false}, "a pickle before text": {profile, []toolchain.OutputFile{code, plain}, false},
		"code":                {profile, []toolchain.OutputFile{elf}, false},
		"code of a toolchain": {native, []toolchain.OutputFile{elf}, true},
		"a pickle beside it":  {native, []toolchain.OutputFile{elf, code}, false},
		"a file that is gone": {profile, []toolchain.OutputFile{{Name: "x", Path: filepath.Join(dir, "none")}}, false},
	} {
		if err := checkMade(c.profile, c.files); (err == nil) != c.ok {
			t.Errorf("%s: error %v, want that it passes: %t", name, err, c.ok)
		}
	}
}

// A model names files beside it by their size; what is no file, such as a folder, a link or nothing, has none.
func TestOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"file": 5, "link": -1, ".": -1, "none": -1} {
		size, ok := onDisk(filepath.Join(dir, name))
		if ok != (want >= 0) || ok && size != want {
			t.Errorf("%s: got %d, %t; want %d", name, size, ok, want)
		}
	}
}

// How an engine was made is read from the provenance of a trusted builder about it, and from nothing else.
func TestHowMade(t *testing.T) {
	t.Parallel()
	r := enginesOf([2]string{"x", "fp32"}, [2]string{"x", "int8"})
	said := func(engine registry.Digest, method string, edit func(*registry.Claim)) registry.Claim {
		return reported(t, engine, registry.VerdictPass, 1, func(c *registry.Claim) {
			c.Roles, c.Statement.PredicateType = []registry.Role{registry.RoleBuilder}, registry.PredicateProvenance
			c.Statement.Predicate = fmt.Appendf(nil, `{"buildDefinition": {"internalParameters": {"made": {"quantize": {"method": %q}}}}}`, method)
			if edit != nil {
				edit(c)
			}
		})
	}
	of := r.Engines[0].Digest
	for name, c := range map[string]struct {
		claims []registry.Claim
		method string
		ok     bool
	}{
		"nothing":                 {nil, "", false},
		"of it":                   {[]registry.Claim{said(of, "static", nil)}, "static", true},
		"behind that of another":  {[]registry.Claim{said(r.Engines[1].Digest, "other", nil), said(of, "static", nil)}, "static", true},
		"of another":              {[]registry.Claim{said(r.Engines[1].Digest, "other", nil)}, "", false},
		"another statement of it": {[]registry.Claim{reported(t, of, registry.VerdictPass, 1, nil)}, "", false},
		"said by a verifier":      {[]registry.Claim{said(of, "static", func(c *registry.Claim) { c.Roles = []registry.Role{registry.RoleVerifier} })}, "", false},
		"that cannot be read":     {[]registry.Claim{said(of, "static", func(c *registry.Claim) { c.Statement.Predicate = []byte(`{"buildDefinition": 3}`) })}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verification{subject: subject{release: r, claims: c.claims}}
			made, ok := v.howMade(of)
			if method, _ := made.Quantize["method"].(string); ok != c.ok || method != c.method {
				t.Errorf("got %+v, %t; want %q, %t", made, ok, c.method, c.ok)
			}
		})
	}
}

// Engines are the same where the same runtime loads the same files in the same way.
func TestSameFiles(t *testing.T) {
	t.Parallel()
	one := func() builtEngine {
		e := builtEngine{files: []toolchain.OutputFile{{Name: "a", Digest: "sha256:1"}, {Name: "b", Digest: "sha256:2"}}}
		e.tool.identity.Name = "r"
		e.engine.Load = &registry.LoadProfile{Required: true}
		e.engine.Providers = []registry.Provider{{Name: "CUDA", Options: map[string]string{"device": "0"}}}
		return e
	}
	if !one().sameFiles(one()) {
		t.Error("the same engine is another one")
	}
	for name, change := range map[string]func(e *builtEngine){
		"another runtime":  func(e *builtEngine) { e.tool.identity.Name = "s" },
		"loaded otherwise": func(e *builtEngine) { e.engine.Load = nil },
		"another provider": func(e *builtEngine) {
			e.engine.Providers = []registry.Provider{{Name: "ROCM", Options: map[string]string{"device": "0"}}}
		},
		"no provider":       func(e *builtEngine) { e.engine.Providers = nil },
		"other options":     func(e *builtEngine) { e.engine.Providers = []registry.Provider{{Name: "CUDA"}} },
		"other bytes":       func(e *builtEngine) { e.files[1].Digest = "sha256:3" },
		"another file name": func(e *builtEngine) { e.files[1].Name = "c" },
		"a file less":       func(e *builtEngine) { e.files = e.files[:1] },
	} {
		other := one()
		if change(&other); one().sameFiles(other) || other.sameFiles(one()) {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}

// Candidates of a tuning are the same by the same rules, and by their precision.
func TestSameCandidate(t *testing.T) {
	t.Parallel()
	one := func() candidate {
		c := candidate{model: loadable{inputs: []toolchain.Input{{Name: "x/a", Digest: "sha256:1"}}}}
		c.tool.identity.Name, c.engine.Precision = "r", "int8"
		return c
	}
	moved := one()
	moved.model.inputs[0].Name = "y/a"
	if !one().same(one()) || !one().same(moved) {
		t.Error("the same candidate is another one")
	}
	for name, change := range map[string]func(c *candidate){
		"another runtime":   func(c *candidate) { c.tool.identity.Name = "s" },
		"loaded otherwise":  func(c *candidate) { c.engine.Load = &registry.LoadProfile{Required: true} },
		"another precision": func(c *candidate) { c.engine.Precision = "fp32" },
		"other bytes":       func(c *candidate) { c.model.inputs[0].Digest = "sha256:2" },
		"another file name": func(c *candidate) { c.model.inputs[0].Name = "x/b" },
		"another folder":    func(c *candidate) { c.model.inputs[0].Name = "x/b/a" },
		"another provider":  func(c *candidate) { c.engine.Providers = []registry.Provider{{Name: "p"}} },
		"an accelerator":    func(c *candidate) { c.engine.Target.Accelerator = &registry.TargetAccelerator{Vendor: "nvidia"} },
		"a file more":       func(c *candidate) { c.model.inputs = append(c.model.inputs, toolchain.Input{}) },
	} {
		other := one()
		if change(&other); one().same(other) {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}

// Every table of ranges that engines were quantized by is kept once, and only such tables.
func TestRangesFiles(t *testing.T) {
	t.Parallel()
	engine := func(method string, calibrated bool) builtEngine {
		e := builtEngine{planned: plan.Engine{Quantizer: &registry.Toolchain{Name: plan.ONNXRuntime}, Quantize: map[string]any{"method": method}}}
		outcome := toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.onnx"}}}
		if calibrated {
			outcome.Files = append(outcome.Files, toolchain.OutputFile{Name: rangesFile, Path: "p", Digest: "sha256:1", Size: 3})
		}
		e.steps = []takenStep{{job: toolchain.Job{Verb: toolchain.VerbCompress}}, {name: "quantize", job: toolchain.Job{Verb: toolchain.VerbQuantize}, outcome: outcome}}
		return e
	}
	static, other, dynamic := engine(plan.MethodStatic, true), engine(plan.MethodStatic, true), engine(plan.MethodDynamic, false)
	other.planned.Quantize["percentile"] = 99.0
	again := engine(plan.MethodStatic, true)
	again.planned.Quantize["per_channel"] = true // which says nothing of activations
	for name, c := range map[string]struct {
		engines []builtEngine
		files   int
		err     string
	}{
		"none": {nil, 0, ""}, "dynamic": {[]builtEngine{dynamic}, 0, ""}, "one": {[]builtEngine{static}, 1, ""},
		"the same twice": {[]builtEngine{static, again}, 1, ""},
		"two":            {[]builtEngine{static, dynamic, other}, 2, ""},
		"one without one": {[]builtEngine{static, engine(plan.MethodStatic, true), func() builtEngine {
			e := engine(plan.MethodStatic, false)
			e.planned.Quantize["percentile"] = 98.0
			return e
		}()}, 0, "quantize left no " + rangesFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := build{}
			b.plan, b.engines = plan.Plan{Calibration: &plan.Set{}}, c.engines
			files, err := b.rangesFiles()
			if len(files) != c.files || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("%d files, error %v; want %d, %q", len(files), err, c.files, c.err)
			}
		})
	}
}
