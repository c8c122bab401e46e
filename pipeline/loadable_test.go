package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The entry of a part is the one file of the engine that the runtime loads in some form; assets and libraries of operators are
// none, and of two files nobody says which is loaded.
func TestEntryOfAPart(t *testing.T) {
	t.Parallel()
	profile := toolchain.Profile{Name: "openvino", Format: "ir", Entry: "model.xml", Forms: []toolchain.Form{{Name: "blob", Format: "blob", Entry: "model.blob"}}}
	file := func(name string, kind registry.FileKind) registry.File { return registry.File{Path: name, Kind: kind} }
	for name, c := range map[string]struct {
		files []registry.File
		entry string // empty: it is refused
	}{
		"the first form":         {[]registry.File{file("model.xml", ""), file("model.bin", "")}, "model.xml"},
		"another form":           {[]registry.File{file("model.blob", "")}, "model.blob"},
		"an asset":               {[]registry.File{file("model.blob", registry.FileAsset), file("model.xml", "")}, "model.xml"},
		"a library of operators": {[]registry.File{file("model.xml", registry.FileCode), file("model.blob", "")}, "model.blob"},
		"both":                   {[]registry.File{file("model.xml", ""), file("model.blob", "")}, ""},
		"none":                   {[]registry.File{file("model.bin", "")}, "model.xml"},
	} {
		for range 20 { // the forms are in a map
			got, err := material{files: c.files}.entryOf(profile, "engine-0")
			if c.entry != "" && (err != nil || got.Entry != c.entry) || c.entry == "" && !registry.HasCode(err, registry.CodeInvalid) {
				t.Fatalf("%s: %s, error %v; want %q", name, got.Entry, err, c.entry)
			}
			if err != nil && !strings.Contains(err.Error(), "engine-0 has the files model.blob and model.xml, of which openvino loads one") {
				t.Fatalf("%s: error %v", name, err)
			}
		}
	}
}

// What a quantized model becomes without a quantizer is as large as it is; the space of a build is not a part of it.
func TestSpaceOfABuild(t *testing.T) {
	t.Parallel()
	compiled := plan.Engine{Precision: "int8", Toolchain: registry.Toolchain{Name: "r"}}
	quantized := compiled
	quantized.Quantize = map[string]any{"method": "static"}
	source := compiled
	source.From = plan.FromSource
	for name, c := range map[string]struct {
		engine plan.Engine
		from   string // what the source is quantized to
		want   int64
	}{
		"the model as it is":         {plan.Engine{Precision: "fp32"}, "", 2000},
		"quantized by the build":     {quantized, "", 1000 + 250 + 250},
		"quantized in the compiler":  {compiled, "", 1250},
		"quantized before":           {compiled, "int8", 2000},
		"compiled from its source":   {source, "int8", 1250},
		"quantized before and again": {quantized, "int8", 1500},
	} {
		b := prepared{plan: plan.Plan{Engines: []plan.Engine{c.engine}}}
		b.inputs.Model, b.inputs.Quantized = []toolchain.Input{{Size: 1000}}, c.from
		if got := b.space(); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// Outputs that cannot be compared are no outputs without an error.
func TestReplayOfAnotherShape(t *testing.T) {
	t.Parallel()
	of := func(values ...float32) map[string]tensor.Tensor {
		y, err := tensor.New(values, 1, int64(len(values)))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]tensor.Tensor{"y": y}
	}
	v := verification{}
	v.iface.Outputs = []validators.TensorInfo{{Name: "y"}}
	r := Replayed{Reference: of(1, 2), Computed: of(1, 2, 3)}
	r.summarize(v, candidate{}, nil)
	if y := r.Outputs[0]; !strings.Contains(y.Problem, "the engine has shape [1 3], the reference [1 2]") || !math.IsNaN(float64(y.MaxAbs)) || !math.IsNaN(float64(y.SNRdB)) {
		t.Errorf("%+v, want no figures and why", y)
	}
	r = Replayed{Reference: of(1, 2), Computed: of(1, 2.5)}
	r.summarize(v, candidate{}, nil)
	if y := r.Outputs[0]; y.Problem != "" || y.MaxAbs != 0.5 {
		t.Errorf("%+v, want a largest error of 0.5", y)
	}
}

// Golden outputs of another machine without a dimension for the cases are refused.
func TestSameOutputsWithoutCases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, y tensor.Tensor) string {
		file := filepath.Join(dir, name)
		if err := cases.WriteShard(file, map[string]tensor.Tensor{"y": y}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	scalar, err := tensor.New([]float32{1})
	if err != nil {
		t.Fatal(err)
	}
	row, err := tensor.New([]float32{1, 2}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	golden, engine := write("golden.safetensors", scalar), write("engine.safetensors", row)
	if err := sameOutputs(golden, engine); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "has no dimension for the cases") {
		t.Errorf("error %v", err)
	}
	if err := sameOutputs(engine, engine); err != nil {
		t.Error(err)
	}
	if err := os.Remove(engine); err != nil {
		t.Fatal(err)
	}
	if err := sameOutputs(golden, engine); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("error %v for an engine that left nothing", err)
	}
}

// A step that cannot begin leaves none open, which would report every second that it goes on.
func TestStepsAgainEnd(t *testing.T) {
	t.Parallel()
	for name, scratch := range map[string]string{"a step": t.TempDir(), "no room for it": filepath.Join(t.TempDir(), "missing")} {
		open := 0
		to := reporter{now: time.Now, to: func(s progress.Step) {
			switch s.State {
			case progress.Started:
				open++
			case progress.Moving:
			default:
				open--
			}
		}}
		step := takenStep{name: "compile", driver: otherBytes{times: new(int)}, outcome: toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.so"}}}}
		err := repeater{scratch: scratch}.repeat(t.Context(), to, &step, runnable{})
		if (err == nil) != (name == "a step") || open != 0 {
			t.Errorf("%s: error %v, %d steps are open", name, err, open)
		}
	}
}

// otherBytes is a tool that makes other bytes each time, and cannot run what it makes here.
type otherBytes struct {
	toolchain.Driver
	times *int
}

func (o otherBytes) Do(_ context.Context, job toolchain.Job, _ string) (toolchain.Outcome, error) {
	if job.Verb == toolchain.VerbRun {
		return toolchain.Outcome{}, registry.Errorf(registry.CodeWrongNode, "target mismatch")
	}
	*o.times++
	return toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.so", Digest: registry.Digest(fmt.Sprint(*o.times))}}}, nil
}

// An engine that this machine cannot run is not reproducible where its bytes differ: nothing runs it, and the build goes on.
// One that ran here is run again, and the engines beside one that fails then keep their class.
func TestReproduceWhatDoesNotRunHere(t *testing.T) {
	t.Parallel()
	by := otherBytes{times: new(int)}
	m := maker{worker: worker{scratch: t.TempDir()}, known: &goldenSet{}}
	engine := func(loaded bool) builtEngine {
		e := builtEngine{loaded: loaded, tool: tool{Toolchain: Toolchain{Profile: toolchain.Profile{Entry: "model.so"}, Timing: by}}}
		e.steps = []takenStep{{name: "compile", driver: by, job: toolchain.Job{Verb: toolchain.VerbCompile}, outcome: toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.so"}}}}}
		return e
	}
	broken := registry.Errorf(registry.CodeInternal, "it was not made")
	all := made{engines: []builtEngine{engine(true), engine(false), {failed: broken}}}
	if err := m.reproduce(t.Context(), (&Pipeline{}).report(), &all); err != nil {
		t.Fatal(err)
	}
	if e := all.engines[0]; !registry.HasCode(e.failed, registry.CodeWrongNode) {
		t.Errorf("one that ran here: %v, want that it does not any more", e.failed)
	}
	if e := all.engines[1]; e.failed != nil || e.steps[0].reproducible != registry.ReproducibleNone {
		t.Errorf("one of another machine: class %q, error %v; want %q", e.steps[0].reproducible, e.failed, registry.ReproducibleNone)
	}
	if !errors.Is(all.engines[2].failed, broken) {
		t.Errorf("one that was not made: %v", all.engines[2].failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.reproduce(ctx, (&Pipeline{}).report(), &all); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of an interrupted build", err)
	}
}
