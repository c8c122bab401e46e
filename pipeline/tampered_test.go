//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tune"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// tampering stores parts other than those that a build hands over, as a builder that is not
// honest could, whose signature counts all the same.
type tampering struct {
	storage.PartStore
	part    func(p *storage.Part)
	sources func(parts []storage.PartRef) []storage.PartRef
	roles   map[registry.Digest]artifact.PartKind
}

func (s tampering) PutPart(ctx context.Context, repository string, p storage.Part) (storage.PartRef, error) {
	p.Files = slices.Clone(p.Files)
	s.part(&p)
	ref, err := s.PartStore.PutPart(ctx, repository, p)
	s.roles[ref.Digest] = p.Role
	return ref, err
}

func (s tampering) Assemble(ctx context.Context, repository string, a storage.Assembly) (registry.Digest, error) {
	a.Parts = slices.DeleteFunc(slices.Clone(a.Parts), func(ref storage.PartRef) bool {
		return s.sources != nil && !slices.Contains(s.sources(a.Parts), ref)
	})
	return s.PartStore.Assemble(ctx, repository, a)
}

// fileOf is a file with a text.
func fileOf(name, text string) storage.PartFile {
	return storage.PartFile{
		File: artifact.File{Path: name, Digest: digest.FromString(text), Size: int64(len(text))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
	}
}

// A release may be signed and still be a trap for the one who verifies it. Nothing of it is run or
// believed before its form was checked.
func TestVerifyRefusesATrap(t *testing.T) {
	t.Parallel()
	of := func(p *storage.Part, role artifact.PartKind) bool { // an image form has the files of its engine
		return p.Role == role || role == artifact.PartEngine && p.Role == artifact.PartImage
	}
	add := func(role artifact.PartKind, name, text string) func(p *storage.Part) {
		return func(p *storage.Part) {
			if of(p, role) {
				p.Files = append(p.Files, fileOf(name, text))
			}
		}
	}
	replace := func(role artifact.PartKind, name, text string) func(p *storage.Part) {
		return func(p *storage.Part) {
			if of(p, role) {
				p.Files = []storage.PartFile{fileOf(name, text)}
			}
		}
	}
	for name, c := range map[string]struct {
		part    func(p *storage.Part)
		without artifact.PartKind // is left out of the sources
		code    registry.Code
		text    string
	}{
		"nothing":                         {part: func(*storage.Part) {}},
		"no image forms, as earlier":      {without: artifact.PartImage},
		"text beside the model":           {part: add(artifact.PartEngine, "notes.txt", "hello")},
		"a pickle beside the model":       {part: add(artifact.PartEngine, "weights.bin", pickle), code: registry.CodeUnsafe, text: "weights.bin"},
		"a pickle as the model":           {part: replace(artifact.PartEngine, "model.onnx", pickle), code: registry.CodeUnsafe, text: "model.onnx"},
		"an image of other files":         {part: replace(artifact.PartImage, "model.onnx", "hello"), code: registry.CodeTrust, text: "is not the image form of engine"},
		"no model":                        {part: replace(artifact.PartEngine, "other.onnx", "hello"), code: registry.CodeInvalid, text: "has no file model.onnx"},
		"a pickle as the reference model": {part: replace(artifact.PartReference, "model.onnx", pickle), code: registry.CodeUnsafe, text: "model.onnx"},
		"limits that are text":            {part: replace(artifact.PartLimits, "limits.json", "hello"), code: registry.CodeInvalid, text: "limits"},
		"an interface that is text":       {part: replace(artifact.PartInterface, "interface.json", "hello"), code: registry.CodeInvalid, text: "interface"},
		"an interface of another type":    {part: edited(artifact.PartInterface, `"outputs":[{"dtype":"float32"`, `"outputs":[{"dtype":"float16"`), code: registry.CodeTrust, text: `output "y" is float16`},
		"an interface of another size":    {part: edited(artifact.PartInterface, `"name":"y","shape":[1,1]`, `"name":"y","shape":[1,2]`), code: registry.CodeTrust, text: `is float32 [1 2] in the interface, and float32 [1 1] in the reference model`},
		"no golden outputs":               {without: artifact.PartGolden, code: registry.CodeTrust, text: "have no golden"},
		"no cases":                        {without: artifact.PartCases, code: registry.CodeTrust, text: "have no cases"},
		"cases that are text":             {part: replaceText(artifact.PartCases), code: registry.CodeInvalid, text: "cases-00000.safetensors"},
		"golden outputs of fewer cases":   {part: replaceShard(t, artifact.PartGolden, "y", 2, 2), code: registry.CodeTrust, text: "the golden outputs cover 2 cases in 1 file, but the release has 3 cases in 1 file"},
		"golden outputs of another name":  {part: replaceShard(t, artifact.PartGolden, "z", 3, 3), code: registry.CodeInvalid, text: `there is no output "y"`},
		"golden outputs without rows":     {part: replaceShard(t, artifact.PartGolden, "y", 3, 1), code: registry.CodeInvalid, text: "want 3 first, one for each case"},
		"cases without an input":          {part: replaceShard(t, artifact.PartCases, "other", 3, 3), code: registry.CodeInvalid, text: `no tensor for the model's input "x"`},
		"cases without rows":              {part: replaceShard(t, artifact.PartCases, "x", 3, 2, 1), code: registry.CodeInvalid, text: "2 cases, and its set has 3"},
		"a case without dimensions":       {part: replaceShard(t, artifact.PartCases, "x", 3), code: registry.CodeInvalid, text: "shape is [], the model wants [1 1]"},
		"golden outputs that are text":    {part: replaceText(artifact.PartGolden), code: registry.CodeInvalid, text: "cases-00000.safetensors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			if c.part == nil {
				c.part = func(*storage.Part) {}
			}
			store := tampering{PartStore: w.p.Parts, part: c.part, roles: make(map[registry.Digest]artifact.PartKind)}
			store.sources = func(parts []storage.PartRef) []storage.PartRef {
				return slices.DeleteFunc(slices.Clone(parts), func(ref storage.PartRef) bool { return store.roles[ref.Digest] == c.without })
			}
			w.p.Parts = store
			built := w.built(t, onlyFP32, build.Options{})
			ran := false
			w.run = func(job toolchain.Job, _ string) error {
				ran = ran || job.Verb == toolchain.VerbRun
				return nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if (err == nil) != (c.code == "") || err != nil && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("error %v (%s), want %q with %q", err, registry.CodeOf(err), c.code, c.text)
			}
			if c.code == registry.CodeUnsafe && ran {
				t.Error("something was run, want nothing before the refusal")
			}
			// A replay does not read the golden outputs: it runs the reference model.
			if _, again := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{}); (again == nil) != (c.code == "") && name != "golden outputs that are text" {
				t.Errorf("replay: error %v, want one where verify has one", again)
			}
			for _, e := range verified.Engines {
				if err != nil && e.Parity.Verdict == evidence.VerdictPass {
					t.Errorf("%s passes, and the error is %v", e.Label, err)
				}
			}
		})
	}
}

// edited replaces a text in the files of a part.
func edited(role artifact.PartKind, from, to string) func(p *storage.Part) {
	return func(p *storage.Part) {
		for i := range p.Files {
			if p.Role != role {
				continue
			}
			f, err := p.Files[i].Open()
			if err != nil {
				panic(err)
			}
			data, err := io.ReadAll(f)
			if err = errors.Join(err, f.Close()); err != nil || !strings.Contains(string(data), from) {
				panic(string(data))
			}
			p.Files[i] = fileOf(p.Files[i].Path, strings.ReplaceAll(string(data), from, to))
		}
	}
}

// replaceShard replaces the files of a part by one with a tensor of this shape, of which its set says that it has count cases.
func replaceShard(t *testing.T, role artifact.PartKind, name string, count int, shape ...int64) func(p *storage.Part) {
	t.Helper()
	values := []float32{1, -2, 3}
	if len(shape) == 0 {
		values = values[:1]
	} else {
		values = values[:shape[0]]
	}
	of, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := tensorfile.Write(&text, map[string]tensor.Tensor{name: of}, nil); err != nil {
		t.Fatal(err)
	}
	return func(p *storage.Part) {
		if p.Role != role {
			return
		}
		file := p.Files[0].Path
		p.Files = []storage.PartFile{fileOf(file, text.String())}
		set := *p.Set
		set.Count, set.Shards = count, []artifact.Shard{{File: file, Count: count}}
		p.Set = &set
	}
}

// replaceText replaces every file of a part by text, under its name.
func replaceText(role artifact.PartKind) func(p *storage.Part) {
	return func(p *storage.Part) {
		for i := range p.Files {
			if p.Role == role {
				p.Files[i] = fileOf(p.Files[i].Path, "hello")
			}
		}
	}
}

// Whichever call of the registry fails, its error is heard of: also where a build learns from the
// one before it, where engines are compared with those of prod, and while variants are tried.
func TestEveryFaultIsAnErrorToo(t *testing.T) {
	t.Parallel()
	static := strings.Replace(digits, "dynamic", "static", 1) + "calibration: calibration/\n"
	version := func(text, version string) string { return strings.Replace(text, "1.0.0", version, 1) }
	for name, c := range map[string]struct {
		before func(w *world, t *testing.T) registry.Ref
		do     func(w *world, t *testing.T, ref registry.Ref) error
	}{
		"build from what was learned": {
			func(w *world, t *testing.T) registry.Ref { return w.built(t, static, build.Options{}).Ref },
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := build.Build(t.Context(), w.p, w.spec(t, version(static, "1.1.0")), build.Options{})
				return err
			},
		},
		"verify beside prod": {
			func(w *world, t *testing.T) registry.Ref {
				built := w.built(t, onlyFP32, build.Options{})
				if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
					t.Fatal(err)
				}
				w.model(t, 1.6)
				return w.built(t, version(onlyFP32, "1.1.0"), build.Options{}).Ref
			},
			func(w *world, t *testing.T, ref registry.Ref) error {
				_, err := verify.Verify(t.Context(), w.p, ref)
				return err
			},
		},
		"tune": {
			func(*world, *testing.T) registry.Ref { return registry.Ref{} },
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := w.tune(t, tuned, 0)
				return err
			},
		},
		"suggest limits": {
			func(*world, *testing.T) registry.Ref { return registry.Ref{} },
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := tune.SuggestLimits(t.Context(), w.p, w.spec(t, digits), "calibration")
				return err
			},
		},
		"replay": {
			func(w *world, t *testing.T) registry.Ref { return w.built(t, digits, build.Options{}).Ref },
			func(w *world, t *testing.T, ref registry.Ref) error {
				_, err := diagnose.Replay(t.Context(), w.p, ref, diagnose.ReplayOptions{Engine: "int8"})
				return err
			},
		},
		"profile": {
			func(w *world, t *testing.T) registry.Ref { return w.built(t, digits, build.Options{}).Ref },
			func(w *world, t *testing.T, ref registry.Ref) error {
				_, err := diagnose.Profile(t.Context(), w.p, ref, "int8")
				return err
			},
		},
		"a part beside another": {
			func(w *world, t *testing.T) registry.Ref { return w.built(t, twoTargets, of(narrow)).Ref },
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := build.Build(t.Context(), w.p, w.spec(t, twoTargets), of(wide))
				return err
			},
		},
		"assemble": {
			func(w *world, t *testing.T) registry.Ref {
				w.built(t, twoTargets, of(narrow))
				return w.built(t, twoTargets, of(wide)).Ref
			},
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
				return err
			},
		},
		"assemble again": {
			func(w *world, t *testing.T) registry.Ref {
				w.built(t, twoTargets, of(narrow))
				w.built(t, twoTargets, of(wide))
				w.assembled(t)
				return registry.Ref{}
			},
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
				return err
			},
		},
		"plan": {
			func(*world, *testing.T) registry.Ref { return registry.Ref{} },
			func(w *world, t *testing.T, _ registry.Ref) error {
				_, err := build.Plan(t.Context(), w.p, w.spec(t, digits))
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				w, f := setup(t, 1.5), &faults{at: at}
				w.calibration(t, []float32{4, 5})
				w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1.5, ranges: `{"x": [0, 5]}`}, nil }
				ref := c.before(w, t)
				w.inject(f)
				err := c.do(w, t, ref)
				switch {
				case at == 0 && err != nil:
					t.Fatalf("without a fault: %v", err)
				case at > f.calls:
					return // every call has failed once
				case at > 0 && !errors.Is(err, errInjected):
					t.Errorf("call %d, %s, failed: got error %v, want that one", at, f.name, err)
				}
			}
		})
	}
}

// Without a folder for temporary files nothing is begun.
func TestWithoutTemporaryFiles(t *testing.T) {
	w := setup(t, 1.5)
	built := w.built(t, digits, build.Options{})
	s := w.spec(t, strings.Replace(tuned, "1.0.0", "1.1.0", 1))
	t.Setenv("TMPDIR", filepath.Join(w.dir, "none"))
	_, makeIt := build.Build(t.Context(), w.p, s, build.Options{})
	_, plan := build.Plan(t.Context(), w.p, s)
	_, tuneIt := tune.Tune(t.Context(), w.p, s, tune.Options{})
	_, verify := verify.Verify(t.Context(), w.p, built.Ref)
	_, suggest := tune.SuggestLimits(t.Context(), w.p, s, "cases")
	_, assemble := build.Assemble(t.Context(), w.p, w.spec(t, twoTargets))
	_, replay := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{Engine: "int8"})
	_, profile := diagnose.Profile(t.Context(), w.p, built.Ref, "int8")
	_, bisect := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{Engine: "int8"})
	_, open := draft.Import(t.Context(), w.p, filepath.Join(w.dir, "model.onnx"), spec.FormatONNX, nil)
	for verb, err := range map[string]error{"build": makeIt, "plan": plan, "tune": tuneIt, "verify": verify, "suggest": suggest, "open": open,
		"assemble": assemble, "replay": replay, "profile": profile, "bisect": bisect} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: error %v, want that the folder does not exist", verb, err)
		}
	}
}

// Where cases have labels, what is lost is accuracy.
func TestTuneByAccuracy(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.53)
	w.priced(t)
	text := pricedSpec("{metric: mae, max: 5, drop: {max: 90%}}")
	text += "tune: {variants: [fp32, {name: int8, quantize: {method: dynamic}}]}\nobjective: {max: accuracy}\n"
	result, err := w.tune(t, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if result.Loss != tune.LossAccuracy || result.Chosen != 0 || len(result.Trials) != 2 {
		t.Fatalf("loss is %q, chose %d of %d, want accuracy and the first of 2", result.Loss, result.Chosen, len(result.Trials))
	}
	if exact, worse := result.Trials[0].Loss, result.Trials[1].Loss; exact != 0 || !(worse > 0) {
		t.Errorf("fp32 loses %v and int8 %v, want none and some", exact, worse)
	}
	drawn, err := result.Plot()
	if err != nil || !strings.Contains(string(drawn), "accuracy drop, percentage points") {
		t.Errorf("plot %s, error %v; want one of the accuracy drop", drawn, err)
	}
}

// The file of the spec gets the choice. Without one it stays as it is.
func TestTuneWritesTheFile(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	result, err := w.tune(t, tuned, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := w.spec(t, tuned)
	result.Chosen = -1
	if err := result.WriteFile(s, s.File); registry.CodeOf(err) != registry.CodeLimit {
		t.Errorf("without a choice: error %v, want CodeLimit", err)
	}
	if text, err := os.ReadFile(s.File); err != nil || string(text) != tuned {
		t.Errorf("without a choice the file has %s, error %v; want it as it was", text, err)
	}
	result.Chosen = 1
	if err := result.WriteFile(s, s.File); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(s.File); err != nil || !strings.Contains(string(text), "variants: [{name: int8") {
		t.Errorf("the file has %s, error %v; want the variant int8", text, err)
	}
}

// The record that a target names is read into memory by compilers, so it has a bound.
func TestTuningRecordOfASpec(t *testing.T) {
	t.Parallel()
	text := strings.Replace(onlyFP32, "[linux/amd64/v1]",
		"[{name: here, os: linux, cpu: {arch: amd64, level: v1}, toolchain: {name: iree, tuning: records.mlir}}]", 1)
	for name, c := range map[string]struct {
		size   int64
		refuse bool
	}{"4 MiB": {4 << 20, false}, "a byte more": {4<<20 + 1, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.put(t, map[string]string{"records.mlir": ""})
			if err := os.Truncate(filepath.Join(w.dir, "records.mlir"), c.size); err != nil {
				t.Fatal(err)
			}
			_, err := build.Plan(t.Context(), w.p, w.spec(t, text))
			if refused := err != nil && strings.Contains(err.Error(), "want at most 4194304"); refused != c.refuse {
				t.Errorf("error %v, want a refusal of the size: %t", err, c.refuse)
			}
		})
	}
}
