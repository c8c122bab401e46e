package consistency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// findings collects what the checks of an engine find.
type findings struct {
	set     *Set
	engine  Engine
	checks  evidence.Checks
	reasons []evidence.Reason
	open    []evidence.Reason // why the engine is undecided
	late    bool              // a check did not run for want of time
}

// maxReasons is how many reasons one check gives.
const maxReasons = 3

// compared is how many pairs of runs are judged together: what one of very many runs gave is not to be lost in an average.
const compared = 64

// repeats compares the runs of the same cases in one process with the first of them, and that with the run in
// another process that the verdict is about.
func (f *findings) repeats(ctx context.Context, done outcome) error {
	if err := f.recordJitter(ctx, evidence.TrialRepeat, f.inOneProcess(done)); err != nil {
		return err
	}
	return f.recordJitter(ctx, evidence.TrialProcess, f.inAnother(done))
}

// inOneProcess pairs each run of a case in one process with the first one.
func (f *findings) inOneProcess(done outcome) iter.Seq2[pair, error] {
	each := len(f.set.repeat) / f.set.turns
	return func(yield func(pair, error) bool) {
		for i, second := range f.set.repeat[each:] {
			first := f.set.repeat[i%each]
			for row, c := range second.cases {
				made, err := f.rerun(c, first.of.First, done, first.Name, slices.Index(first.cases, c))
				if err == nil {
					made.got, err = f.set.outputs(done.dir[second.Name], second.Name, row)
				}
				if !yield(made, err) {
					return
				}
			}
		}
	}
}

// inAnother pairs the first run of each case in one process with the run of the cases.
func (f *findings) inAnother(done outcome) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		for _, first := range f.set.repeat[:len(f.set.repeat)/f.set.turns] {
			for row, c := range first.cases {
				made, err := f.rerun(c, first.of.First, done, first.Name, row)
				made.got = made.want
				if err == nil {
					made.want, err = f.set.outputs(f.engine.Outputs, first.of.File, c.row)
				}
				if !yield(made, err) {
					return
				}
			}
		}
	}
}

// rerun is what a run gave for a case, to compare with, and its inputs.
func (f *findings) rerun(c slot, first int, done outcome, name string, row int) (made pair, err error) {
	made.number = first + c.row
	if made.want, err = f.set.outputs(done.dir[name], name, row); err != nil {
		return made, err
	}
	made.inputs, err = f.set.read(c)
	return made, err
}

// recordJitter records what differs between two runs of the same cases.
func (f *findings) recordJitter(ctx context.Context, kind evidence.Trial, pairs iter.Seq2[pair, error]) error {
	p, reasons, err := f.jitter(ctx, kind, validators.TrialOf(kind).Words, pairs)
	if err != nil {
		return err
	}
	f.add(p, reasons)
	return nil
}

// add adds a check of runs of the same cases, and the reasons why it fails.
func (f *findings) add(p evidence.Check, reasons []evidence.Reason) {
	if p.Verdict == evidence.VerdictFail {
		f.fail(validators.TrialOf(p.Trial).Code, p.Message, reasons)
	}
	f.checks = append(f.checks, p)
}

// jitter judges what differs between two runs of the same cases, so many pairs at a time.
func (f *findings) jitter(ctx context.Context, kind evidence.Trial, where string,
	pairs iter.Seq2[pair, error]) (evidence.Check, []evidence.Reason, error) {
	p := validators.TrialOf(kind).Check("")
	p.Verdict = evidence.VerdictPass
	found := jitter{nan: -1}
	var some []pair
	for made, err := range pairs {
		if err != nil {
			return p, nil, err
		}
		if some = append(some, made); len(some) == compared {
			if err := f.addJitter(ctx, &p, &found, some); err != nil {
				return p, nil, err
			}
			some = some[:0]
		}
	}
	if err := f.addJitter(ctx, &p, &found, some); err != nil || p.Affected == 0 {
		return p, nil, err
	}
	p.Message = fmt.Sprintf("%s, %d of %s differ, by at most %.6g", where, p.Affected, registry.Count(p.Cases, "case"), float64(p.Value))
	if p.Output != "" {
		p.Message += " in output " + p.Output
	}
	if found.nan >= 0 {
		p.Message += fmt.Sprintf("; case %d has NaN in one of the runs", found.nan)
	}
	p.Verdict = evidence.VerdictRecorded
	if f.engine.Exact && !found.fails {
		found.reasons = []evidence.Reason{{Message: "the limits allow no jitter"}}
	}
	if found.fails || found.nan >= 0 || f.engine.Exact {
		p.Verdict = evidence.VerdictFail
	}
	return p, found.reasons, nil
}

// jitter is what pairs of runs showed beside their check.
type jitter struct {
	fails   bool // a limit is exceeded
	reasons []evidence.Reason
	nan     int // the number of a case with NaN in one of the runs; -1: none
}

// addJitter adds pairs to a check.
func (f *findings) addJitter(ctx context.Context, p *evidence.Check, found *jitter, pairs []pair) error {
	differ := slices.DeleteFunc(slices.Clone(pairs), func(made pair) bool { return !made.differs() })
	p.Cases, p.Affected = p.Cases+len(pairs), p.Affected+len(differ)
	if len(differ) == 0 {
		return nil
	}
	some := validators.TrialOf(p.Trial).Check("")
	verdict, reasons, err := f.compare(ctx, &some, pairs)
	if err != nil {
		return err
	}
	if some.Value > p.Value {
		p.Value, p.Output = some.Value, some.Output
	}
	if verdict == evidence.VerdictFail && !found.fails {
		found.fails, found.reasons = true, reasons
	}
	if at := slices.IndexFunc(differ, pair.oneNaN); at >= 0 && found.nan < 0 {
		found.nan = differ[at].number
	}
	return nil
}

// trial compares what an engine computed for a batch with what it computes for each case alone, and
// for other sizes with what the reference model computes.
func (f *findings) trial(ctx context.Context, t trial, done outcome) error {
	p := validators.TrialOf(t.kind).Check(t.what)
	p.Verdict, p.Message = evidence.VerdictPass, t.note
	defer func() { f.checks = append(f.checks, p) }()
	var broken error
	for _, s := range t.shards {
		broken = cmp.Or(broken, done.failed[s.Name])
	}
	if broken != nil || t.needsReference() {
		known, err := f.refer(ctx, t, &p)
		if err != nil || !known {
			return err
		}
	}
	if broken != nil {
		f.broke(&p, t.note, validators.TrialOf(t.kind).Code, "the engine fails, and the reference model does not", broken)
		return nil
	}
	p.Cases = distinct(t)
	switch {
	case t.batch > largeBatch:
		return f.largeBatch(ctx, t, &p, done)
	case validators.TrialOf(t.kind).Finite:
		return f.beyond(ctx, t, &p, done)
	}
	return f.compareAll(ctx, t, &p, done)
}

// refer has the reference model run on the inputs of a trial. If it fails on them, the check is undecided, and known is false.
func (f *findings) refer(ctx context.Context, t trial, p *evidence.Check) (known bool, err error) {
	if err := f.set.refer(ctx, t); err != nil {
		return false, err
	}
	for _, s := range t.shards {
		if err := f.set.reference.failed[s.Name]; err != nil {
			why := "the reference model fails: "
			if outOfTime(err) {
				why, f.late = "the reference model did not run: ", true
			}
			p.Verdict, p.Message, p.Cases = evidence.VerdictUndecided, sentence(t.note, "not judged: "+why+err.Error()), 0
			return false, nil
		}
	}
	return true, nil
}

// distinct is how many cases a trial has.
func distinct(t trial) (n int) {
	for _, s := range t.shards {
		rows := slices.Clone(s.cases)
		slices.SortFunc(rows, func(a, b slot) int { return cmp.Compare(a.row, b.row) })
		n += len(slices.Compact(rows))
	}
	return n
}

// compareAll compares the outputs of a trial and records the verdict.
func (f *findings) compareAll(ctx context.Context, t trial, p *evidence.Check, done outcome) error {
	pairs, err := f.pairs(t, done)
	if errors.Is(err, tensor.ErrMismatch) {
		p.Verdict, p.Cases = evidence.VerdictFail, 0
		f.fail(validators.TrialOf(t.kind).Code, t.what+": "+err.Error(), nil)
		p.Message = sentence(t.note, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	return f.judge(ctx, t, p, pairs, done)
}

// pairs are those of all places of a trial.
func (f *findings) pairs(t trial, done outcome) (all []pair, err error) {
	for _, s := range t.shards {
		for at := range s.cases {
			made, err := f.pair(t, s, at, done)
			if err != nil {
				return nil, err
			}
			all = append(all, made)
		}
	}
	return all, nil
}

// largeBatch compares a batch of many cases with its cases alone. If it differs by more than a small one may, it is compared with what the
// reference model computes for the batch: an engine that takes the range of its numbers from a batch may be further off in a large one.
func (f *findings) largeBatch(ctx context.Context, t trial, p *evidence.Check, done outcome) error {
	pairs, err := f.pairs(t, done)
	if err != nil && !errors.Is(err, tensor.ErrMismatch) {
		return err
	}
	if err == nil {
		alone := validators.TrialOf(evidence.TrialBatch).Check(t.what)
		verdict, _, err := f.compare(ctx, &alone, pairs)
		if err != nil {
			return err
		}
		if verdict == evidence.VerdictPass {
			p.Baseline, p.Value, p.Output = alone.Baseline, alone.Value, alone.Output
			return nil
		}
	}
	known, err := f.refer(ctx, t, p)
	if err != nil || !known {
		return err
	}
	s := t.shards[0]
	s.cases = s.cases[:len(s.cases)/t.batch] // one place for each batch
	t.shards, t.batch = []shard{s}, 0
	return f.compareAll(ctx, t, p, done)
}

// beyond compares with the reference model only if the engine returns a value that is not finite.
func (f *findings) beyond(ctx context.Context, t trial, p *evidence.Check, done outcome) error {
	for _, s := range t.shards {
		for at := range s.cases {
			got, err := f.set.outputs(done.dir[s.Name], s.Name, at)
			if err != nil {
				return err
			}
			if !finite(got) {
				known, err := f.refer(ctx, t, p)
				if err != nil || !known {
					return err
				}
				return f.compareAll(ctx, t, p, done)
			}
		}
	}
	return nil
}

// finite reports whether outputs have neither NaN nor infinities.
func finite(outputs map[string]tensor.Tensor) bool {
	for _, output := range outputs {
		if output.DType.Class() == tensor.ClassFloat &&
			slices.ContainsFunc(output.Float64s(), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			return false
		}
	}
	return true
}

// judge records the verdict on what a trial gave.
func (f *findings) judge(ctx context.Context, t trial, p *evidence.Check, pairs []pair, done outcome) error {
	verdict, reasons, err := f.compare(ctx, p, pairs)
	if err != nil {
		return err
	}
	switch verdict {
	case evidence.VerdictPass:
	case evidence.VerdictFail:
		p.Verdict = evidence.VerdictFail
		what := t.what + ": " + validators.TrialOf(t.kind).Words
		mixes, err := f.referenceMixes(ctx, t, done)
		if err != nil {
			return err
		}
		if mixes {
			what += ", as the reference model does: the model mixes the cases of a batch, so let shapes: give the batch one size, or repair the model"
		}
		f.fail(validators.TrialOf(t.kind).Code, what, reasons)
		p.Message = sentence(t.note, f.reasons[len(f.reasons)-1].Message)
	default: // nothing was compared, say
		p.Verdict = evidence.VerdictUndecided
		p.Message = sentence(t.note, "not judged"+prefixed(": ", said(reasons)))
	}
	return nil
}

// referenceMixes reports whether the model is the cause of a difference between a batch and its cases alone: the engine computes
// for the batch what the reference model computes for it, and that differs from the golden outputs of the cases, which were computed alone.
func (f *findings) referenceMixes(ctx context.Context, t trial, done outcome) (bool, error) {
	if t.batch == 0 {
		return false, nil
	}
	if err := f.set.refer(ctx, t); err != nil {
		return false, err
	}
	var engine, reference []pair
	for _, s := range t.shards {
		if f.set.reference.failed[s.Name] != nil {
			return false, nil //nolint:nilerr // a model that fails shows nothing about its batches
		}
		for at := range s.cases {
			made, err := f.inBatch(t, s, at, done, f.engine.Outputs)
			if err != nil {
				return false, err
			}
			expected, err := f.inBatch(t, s, at, f.set.reference, f.engine.Comparison.Golden)
			if errors.Is(err, tensor.ErrMismatch) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			made.want = expected.got
			engine, reference = append(engine, made), append(reference, expected)
		}
	}
	same, _, err := f.compare(ctx, &evidence.Check{Trial: t.kind}, engine)
	if err != nil || same != evidence.VerdictPass {
		return false, err
	}
	mixed, _, err := f.compare(ctx, &evidence.Check{Trial: t.kind}, reference)
	return mixed == evidence.VerdictFail, err
}

// said joins the messages of reasons.
func said(reasons []evidence.Reason) string {
	var all []string
	for _, r := range reasons[:min(len(reasons), maxReasons)] {
		all = append(all, r.Message)
	}
	return strings.Join(all, "; ")
}

func sentence(note, more string) string {
	if note == "" {
		return more
	}
	return note + "; " + more
}

// fail adds the reasons of a check, each with what failed in front.
func (f *findings) fail(code, what string, reasons []evidence.Reason) {
	if len(reasons) == 0 {
		reasons = []evidence.Reason{{}}
	}
	for _, r := range reasons[:min(len(reasons), maxReasons)] {
		r.Code, r.Message = code, what+prefixed(": ", r.Message)
		f.reasons = append(f.reasons, r)
	}
}

func prefixed(by, text string) string {
	if text == "" {
		return ""
	}
	return by + text
}

// compare judges pairs by the limits of the engine, and notes the largest difference. Outputs of
// other shapes fail.
func (f *findings) compare(ctx context.Context, p *evidence.Check, pairs []pair) (evidence.Verdict, []evidence.Reason, error) {
	comparison := f.engine.Comparison
	comparison.Golden, comparison.Engine, comparison.Masks.Dir = "want", "got", "inputs"
	comparison.Labels, comparison.Shards = parity.Labels{}, nil
	sides := make(map[string]map[string]tensor.Tensor) // by file: a file of its own on disk would cost more than the comparison
	for i, pair := range pairs {
		s := artifact.Shard{File: strconv.Itoa(i), First: pair.number, Count: 1}
		comparison.Shards = append(comparison.Shards, s)
		for dir, tensors := range map[string]map[string]tensor.Tensor{
			comparison.Golden: pair.want, comparison.Engine: pair.got, comparison.Masks.Dir: pair.inputs} {
			sides[filepath.Join(dir, s.File)] = tensors
		}
	}
	comparison.Open = func(path string, limits tensorfile.Limits) (*tensorfile.File, error) {
		return inMemory(sides[path], limits)
	}
	comparison.Masks.Shards = comparison.Shards
	found, err := parity.Compare(ctx, comparison)
	if errors.Is(err, tensor.ErrMismatch) {
		p.Value = evidence.Figure(math.Inf(1))
		return evidence.VerdictFail, []evidence.Reason{{Message: err.Error()}}, nil
	}
	if err != nil {
		return "", nil, err
	}
	for _, name := range names(f.set.Interface.Outputs) {
		if r := found.Outputs[name]; float64(p.Value) < r.MaxAbs {
			p.Value, p.Output = evidence.Figure(r.MaxAbs), name
		}
	}
	verdict, reasons := f.engine.Judge(p.Trial, found.Outputs, found.Cases)
	return verdict, reasons, nil
}
