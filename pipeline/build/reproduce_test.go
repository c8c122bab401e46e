package build

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A step that cannot begin leaves none open, which would report every second that it goes on.
func TestStepsAgainEnd(t *testing.T) {
	t.Parallel()
	for name, scratch := range map[string]string{"a step": t.TempDir(), "no room for it": filepath.Join(t.TempDir(), "missing")} {
		open := 0
		to := run.Reporter{Now: time.Now, To: func(s progress.Step) {
			switch s.State {
			case progress.Started:
				open++
			case progress.Moving:
			default:
				open--
			}
		}}
		step := run.Step{Name: "compile", Driver: otherBytes{times: new(int)}, Outcome: toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.so"}}}}
		err := run.Repeater{Scratch: scratch}.Repeat(t.Context(), to, &step, run.Runnable{})
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
	m := Maker{Worker: run.Worker{Scratch: t.TempDir()}, known: &goldenset.Set{}}
	engine := func(loaded bool) BuiltEngine {
		e := BuiltEngine{loaded: loaded, Tool: run.Tool{Toolchain: run.Toolchain{Profile: toolchain.Profile{Entry: "model.so"}, Timing: by}}}
		e.steps = []run.Step{{Name: "compile", Driver: by, Job: toolchain.Job{Verb: toolchain.VerbCompile}, Outcome: toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.so"}}}}}
		return e
	}
	broken := registry.Errorf(registry.CodeInternal, "it was not made")
	all := made{engines: []BuiltEngine{engine(true), engine(false), {failed: broken}}}
	if err := reproduce(t.Context(), m, (&run.Env{}).Report(), &all); err != nil {
		t.Fatal(err)
	}
	if e := all.engines[0]; !registry.HasCode(e.failed, registry.CodeWrongNode) {
		t.Errorf("one that ran here: %v, want that it does not any more", e.failed)
	}
	if e := all.engines[1]; e.failed != nil || e.steps[0].Reproducible != evidence.ReproducibleNone {
		t.Errorf("one of another machine: class %q, error %v; want %q", e.steps[0].Reproducible, e.failed, evidence.ReproducibleNone)
	}
	if !errors.Is(all.engines[2].failed, broken) {
		t.Errorf("one that was not made: %v", all.engines[2].failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := reproduce(ctx, m, (&run.Env{}).Report(), &all); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of an interrupted build", err)
	}
}
