package verify

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	// consistencyTime is what the checks of one engine may take, as far as that is known before.
	consistencyTime = 20 * time.Second
	// An engine is loaded again as often as fits loadsTime, but at least twice, and at most mostLoads times.
	loadsTime = 5 * time.Second
	mostLoads = 16
)

// consistencyChecks checks the engines of a verification beyond their cases. The zero value checks
// nothing.
type consistencyChecks struct {
	v       Session
	outputs RunOutputs
	set     *consistency.Set
	dir     string
	golden  evidence.Check // of the golden outputs, for all engines
	rerun   rerun          // by which each engine is judged, where golden passes
}

// newConsistencyChecks makes the checks for the slowest engine, which all engines get, and runs the
// reference model on them. one is about the time of the reference model for one case.
func newConsistencyChecks(ctx context.Context, v Session, outputs RunOutputs, one time.Duration) (_ consistencyChecks, err error) {
	ctx, done := v.Env.Report().StepIn(ctx, "prepare consistency checks")
	p := consistencyChecks{v: v, outputs: outputs, dir: filepath.Join(v.Scratch, "consistency")}
	reference := run.Candidate{ID: run.ReferenceID, Tool: v.Tools[run.OnnxRuntime], Model: v.ReferenceModel}
	var held []string
	note := v.Iface.NoBatches()
	defer func() { done(note, err, held...) }()
	p.set, err = consistency.New(consistency.Options{Interface: v.Iface, Dir: v.Cases.Dir, Shards: v.Cases.Set.Shards, Copies: v.copies,
		Scratch: p.dir, Budget: consistencyTime, Run: outputs.median(), Repeats: v.Limits.RepeatedRuns(), Draw: draw(v)})
	if err != nil {
		return p, err
	}
	note = cmp.Or(p.repeatsNote(), note)
	if err := p.set.Reference(ctx, p.runner(reference, newExtra(v, run.ReferenceID, outputs, 2), &held)); err != nil {
		return p, err
	}
	p.golden, p.rerun, err = checkGolden(ctx, v, outputs, max(outputs.median(), goldenSlower*one))
	return p, err
}

// repeatParts is how many times the repeated runs that limits ask for may take what is foreseen: a run may take half of what is left, and
// twice what is foreseen.
const repeatParts = 4

// repeatTime is what the repeated runs that limits ask for take of an engine, as far as that is known before; 0 if they ask for none.
func (p consistencyChecks) repeatTime() time.Duration {
	if p.v.Limits.RepeatedRuns() == 0 {
		return 0
	}
	return time.Duration(p.set.Repeated()) * p.outputs.median()
}

// repeatsNote is how many repeated runs limits ask for, and what they take; empty if they ask for none.
func (p consistencyChecks) repeatsNote() string {
	if p.v.Limits.RepeatedRuns() == 0 {
		return ""
	}
	return fmt.Sprintf("the limits ask for %s of each engine, about %v", registry.Count(p.v.Limits.RepeatedRuns(), "repeated run"), p.repeatTime().Round(time.Second/10))
}

// draw picks cases and sizes at random, so that a builder cannot predict them.
func draw(v Session) func(int) int {
	if v.Env.Draw != nil {
		return v.Env.Draw
	}
	return rand.IntN
}

// run checks an engine, whose outputs differ so from the reference's over all cases that ran, and returns
// what was found, and why the engine does not pass. An engine whose outputs could not be compared is not checked. One that fails on the
// cases is not compared with what the reference model computes now: that would accuse the golden outputs of the same error.
func (p consistencyChecks) run(ctx context.Context, c run.Candidate, left *extra,
	whole map[string]tensor.Result, ran int, fails bool) (_ evidence.Checks, against validators.Findings, err error) {
	if p.golden.Trial == "" || ran == 0 {
		return nil, nil, nil
	}
	ctx, done := p.v.Env.Report().StepIn(ctx, "check consistency of "+c.Engine.Label())
	var held []string
	var note string
	defer func() { done(note, err, held...) }()
	left.more(repeatParts * p.repeatTime())
	dir := filepath.Join(p.dir, c.ID)
	defer os.RemoveAll(dir)
	comparison, err := comparisonOfSome(ctx, p.v, c.Engine.Precision)
	if err != nil {
		return nil, nil, err
	}
	engine := consistency.Engine{Run: p.runner(c, left, &held), Load: p.loader(c, left, &held), Outputs: p.outputs.dir(c.ID), Comparison: comparison,
		Exact: p.v.Limits.ExactRepeats(), Judge: p.judge(c, whole)}
	found, err := p.set.Engine(ctx, engine, dir)
	if err != nil {
		return nil, nil, err
	}
	golden := p.golden
	if !fails && (golden.Verdict == evidence.VerdictPass || golden.Verdict == evidence.VerdictRecorded) {
		message, err := p.rerun.judge(ctx, p.v, c, p.outputs.dir(c.ID), comparison, whole)
		if err != nil {
			return nil, nil, err
		}
		if message != "" {
			golden.Verdict, golden.Message = evidence.VerdictFail, message
		}
	}
	note = consistencyNote(found.Checks)
	return append(found.Checks, golden), slices.Concat(judgeGolden(golden), validators.Failed(found.Failed...),
		validators.Undecided(p.v.Limits.JudgeNotRun(found.Checks)...), validators.Undecided(found.Open...)), nil
}

// judgeGolden fails an engine whose golden outputs are not the reference model's, or that is off from what that computes now. Where that is
// not known, it does not pass.
func judgeGolden(check evidence.Check) validators.Findings {
	switch check.Verdict {
	case evidence.VerdictPass, evidence.VerdictRecorded:
		return nil
	case evidence.VerdictFail:
		return validators.Failed(evidence.Reason{Code: validators.TrialOf(check.Trial).Code, Output: check.Output, Message: check.Message})
	}
	return validators.Undecided(evidence.Reason{Code: validators.ReasonNotRun, Trial: check.Trial, Output: check.Output,
		Message: "the golden outputs were not compared with the reference model: " + check.Message})
}

// judge judges by the limits of an engine's precision. What few cases cannot decide is no failure.
func (p consistencyChecks) judge(c run.Candidate, whole map[string]tensor.Result) consistency.Judge {
	return func(kind evidence.Trial, outputs map[string]tensor.Result, cases int) (evidence.Verdict, []evidence.Reason) {
		if validators.TrialOf(kind).Finite {
			return validators.JudgeFinite(outputs).Verdict()
		}
		judged := p.v.Limits.JudgeSome(c.Engine.Precision, validators.Measured{Outputs: outputs, Whole: whole, Cases: cases, OtherSizes: kind == evidence.TrialDimension})
		again := p.v.Limits.JudgeAgain(kind, c.Engine.Precision, outputs, whole)
		if judged.Verdict == evidence.VerdictUndecided && len(again) == 0 {
			return judged.Verdict, judged.Reasons
		}
		return append(validators.Failed(again...), slices.DeleteFunc(judged.Found, func(f validators.Finding) bool {
			return f.Verdict != evidence.VerdictFail
		})...).Verdict()
	}
}

// runner runs an engine in a process of its own.
func (p consistencyChecks) runner(c run.Candidate, left *extra, held *[]string) consistency.Runner {
	return func(ctx context.Context, inputs []consistency.Input, dir string) (string, error) {
		execution, err := p.runOn(c, inputs)
		if err != nil {
			return "", err
		}
		if c.ID == run.ReferenceID { // it runs as it did for the golden outputs
			execution.Fix()
		}
		err = left.do(ctx, &execution, dir)
		*held = execution.Held
		return filepath.Join(dir, "outputs", c.ID), err
	}
}

// loader loads an engine several times in a process of its own. No run of the engine comes after it, so it may take all of the time
// that is left.
func (p consistencyChecks) loader(c run.Candidate, left *extra, held *[]string) consistency.Loader {
	return func(ctx context.Context, inputs []consistency.Input, dir string) ([]string, error) {
		run, err := p.runOn(c, inputs)
		if err != nil {
			return nil, err
		}
		var outputs []string
		once := run.Job.Run.Engines[0]
		run.Job.Run.Engines = nil
		for i := range loadsOf(left.load, time.Duration(p.set.LoadCases())*p.outputs.median(), cmp.Or(p.v.Env.MostLoads, mostLoads)) {
			once.ID = fmt.Sprintf("%s-load-%d", c.ID, i+1)
			run.Job.Run.Engines = append(run.Job.Run.Engines, once)
			outputs = append(outputs, filepath.Join(dir, "outputs", once.ID))
		}
		left.parts = 1
		err = left.do(ctx, &run, dir)
		*held = run.Held
		return outputs, err
	}
}

// loadsOf is how often an engine is loaded that takes so long to load, and so long for its cases: at most so often.
func loadsOf(load, cases time.Duration, most int) int {
	each := load + cases
	if each <= 0 {
		return most
	}
	return int(min(max(loadsTime/each, 2), time.Duration(most)))
}

// runOn is a run of an engine on inputs.
func (p consistencyChecks) runOn(c run.Candidate, inputs []consistency.Input) (run.EngineRun, error) {
	execution := c.Tool.Run(toolchain.RunOptions{})
	execution.Job.Machine = run.Machine(p.v.Node)
	for _, in := range inputs {
		input, err := toolchain.FileInput(toolchain.RoleCases, in.Name, in.Path)
		if err != nil {
			return execution, err
		}
		execution.Job.Inputs = append(execution.Job.Inputs, input)
	}
	execution.AddCandidate(c)
	return execution, nil
}

// consistencyNote says how many checks there are, which say nothing, and whether runs differ.
func consistencyNote(checks evidence.Checks) string {
	var undecided []string
	checked, jitter := len(checks), 0
	for _, c := range checks {
		switch {
		case c.NotForModel():
			checked--
		case c.Verdict == evidence.VerdictUndecided:
			undecided = append(undecided, c.Name())
		case c.Verdict == evidence.VerdictRecorded:
			jitter++
		}
	}
	note := registry.Count(checked, "check")
	if len(undecided) > 0 {
		note += fmt.Sprintf(", %d undecided: %s", len(undecided), strings.Join(undecided, "; "))
	}
	if jitter > 0 {
		note += fmt.Sprintf(", %d with jitter within the limits", jitter)
	}
	return note
}

// plainChecks are checks as evidence may have them.
func plainChecks(checks evidence.Checks) evidence.Checks {
	plain := slices.Clone(checks)
	for i := range plain {
		for _, text := range []*string{&plain[i].Size, &plain[i].Output, &plain[i].Message} {
			*text = registry.PlainText(*text)
		}
	}
	return plain
}
