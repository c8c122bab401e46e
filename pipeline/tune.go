package pipeline

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tradeoff"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// TuneOptions bound a tuning.
type TuneOptions struct {
	Budget time.Duration // of wall time; what is under way when it is spent is finished. 0 means none
}

// tuning tries the candidates of a spec, one after the other.
type tuning struct {
	p        *Pipeline
	began    time.Time
	deadline time.Time      // zero for none
	spec     *spec.Spec     // with all candidates as its variants
	only     []spec.Variant // the candidates, if not all that the spec has
	maker
	verify verification
	tried  []candidate // by trial
	result TuneResult
}

// Tune makes every candidate of the spec for the targets that this machine meets, measures
// them, and chooses by the spec's objective. When ctx ends or the budget is spent, the
// result has what was measured until then; the error is that of ctx. Errors:
// CodeWrongNode when this machine meets no target; those of building the reference.
func (p *Pipeline) Tune(ctx context.Context, s *spec.Spec, o TuneOptions) (TuneResult, error) {
	temp, err := tempdir.New("tune")
	if err != nil {
		return TuneResult{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	t := &tuning{p: p, began: p.now()}
	if o.Budget > 0 {
		t.deadline = t.began.Add(o.Budget)
	}
	if err := t.begin(ctx, s, scratch); err != nil {
		return TuneResult{}, err
	}
	err = t.try(ctx)
	if err == nil {
		err = t.time(ctx)
	}
	t.conclude()
	return t.result, err
}

// begin plans all candidates for the targets at hand, and runs the reference.
func (t *tuning) begin(ctx context.Context, s *spec.Spec, scratch string) error {
	node, err := t.p.Node(ctx, nil)
	if err != nil {
		return err
	}
	var here []string
	for _, target := range s.Targets {
		bare := target.Registry()
		if lacks := bare.Match(node, node.Runtime()); len(lacks) > 0 {
			t.result.Skipped = append(t.result.Skipped, Skipped{target.Name, "not this machine: " + lacks[0].String()})
			continue
		}
		here = append(here, target.Name)
	}
	if len(here) == 0 {
		return registry.Errorf(registry.CodeWrongNode,
			"this machine meets no target of %s, so nothing can be measured on it: %s: %s",
			s.File, t.result.Skipped[0].Label, t.result.Skipped[0].Reason)
	}
	candidates := t.only
	if candidates == nil {
		candidates = s.Candidates()
	}
	t.spec = s.Trying(candidates, here)
	t.worker, t.baseline = worker{scratch: scratch}, &baseline{}
	if t.prepared, err = t.p.prepare(ctx, t.spec, t.worker, BuildOptions{}); err != nil {
		return err
	}
	if t.node, err = t.p.Node(ctx, t.tools.runtimes()); err != nil {
		return err
	}
	golden, err := t.runReference(ctx, t.p.report())
	if err != nil {
		return err
	}
	t.result.Model, t.result.Node, t.result.Goal, t.result.Loss = t.plan.Model, t.node, s.Objective.Goal(), LossNoise
	if t.plan.Cases.Labels != "" {
		t.result.Loss = LossAccuracy
	}
	t.result.Objective = objective(s)
	t.verify, err = t.verification(golden)
	return err
}

// objective is that of a spec. Times that it does not bound are bounded by the limits; the
// limits of parity and accuracy have to be kept anyway.
func objective(s *spec.Spec) tradeoff.Objective {
	to, limits := s.Objective.SubjectTo, s.LimitOverrides().Latency
	o := tradeoff.Objective{Goal: tradeoff.Goal(s.Objective.Goal()), P50Ns: int64(to.P50), P99Ns: int64(to.P99)}
	if o.P50Ns == 0 && limits.P50 != nil {
		o.P50Ns = int64(limits.P50.MaxNs)
	}
	if o.P99Ns == 0 && limits.P99 != nil {
		o.P99Ns = int64(limits.P99.MaxNs)
	}
	if to.AccuracyDrop != nil {
		drop := float64(*to.AccuracyDrop)
		o.MaxLoss = &drop
	}
	return o
}

// verification is what judges candidates by the plan, as Verify judges the engines of a
// release: cases and golden outputs lie where shards are looked for.
func (t *tuning) verification(golden goldenSet) (verification, error) {
	given, err := t.material("cases", t.inputs.Cases.Files)
	if err != nil {
		return verification{}, err
	}
	cases, err := t.material("cases-for-candidates", t.inputs.Cases.Engines())
	if err != nil {
		return verification{}, err
	}
	outputs := material{dir: filepath.Dir(golden.files[0].Path), set: &golden.set}
	return verification{p: t.p, subject: subject{began: beginning{StartedOn: t.began.UTC()}}, scratch: t.scratch,
		host: host{tools: t.tools, node: t.node}, fetched: fetched{expected: expected{limits: t.plan.Limits, iface: t.plan.Interface,
			cases: cases, golden: outputs, changed: t.inputs.Cases.Changed, scorer: newScorer(t.p, t.inputs.program, given, outputs)}}}, nil
}

// material links files of the cases in a new folder.
func (t *tuning) material(folder string, files []toolchain.Input) (material, error) {
	m := material{dir: filepath.Join(t.scratch, folder), set: &t.inputs.Cases.Record}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		return m, err
	}
	for _, in := range files {
		m.files = append(m.files, registry.File{Path: in.Name, Digest: in.Digest, Size: in.Size})
		if err := os.Symlink(in.Path, filepath.Join(m.dir, in.Name)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// try makes and judges the candidates, one after the other, while there is time: half of
// the budget, since the rest is for latencies.
func (t *tuning) try(ctx context.Context) error {
	for i, planned := range t.plan.Engines {
		label := planned.Target.Name + "/" + planned.Variant
		if t.spent(0.5) {
			t.result.Skipped = append(t.result.Skipped, Skipped{label, "the budget was spent"})
			continue
		}
		err := t.tryOne(ctx, i, planned)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			t.result.Skipped = append(t.result.Skipped, Skipped{label, err.Error()})
		}
	}
	if n := len(t.result.Skipped); len(t.result.Trials) == 0 && n > 0 {
		return registry.Errorf(registry.CodeInvalid,
			"nothing could be tried: %s: %s", t.result.Skipped[n-1].Label, t.result.Skipped[n-1].Reason)
	}
	return nil
}

// spent reports whether this share of the budget is gone.
func (t *tuning) spent(share float64) bool {
	if t.deadline.IsZero() {
		return false
	}
	whole := t.deadline.Sub(t.began)
	return t.p.now().Sub(t.began) > time.Duration(share*float64(whole))
}

func (t *tuning) tryOne(ctx context.Context, i int, planned plan.Engine) error {
	made, err := t.makeEngine(ctx, t.p.report(), planned)
	if err != nil {
		return err
	}
	variant, ok := t.spec.Variant(planned.Variant)
	if !ok {
		return registry.Errorf(registry.CodeInternal, "no variant %s", planned.Variant)
	}
	c := candidate{id: engineID(i), engine: made.engine, tool: made.tool}
	trial := Trial{Target: planned.Target.Name, Variant: planned.Variant,
		Precision: planned.Precision, Spec: variant.Written().Flow()}
	if c.model, err = loadableOutput(made.tool.Profile, c.id, made.files); err != nil {
		return err
	}
	for _, f := range made.files {
		trial.SizeBytes += f.Size
	}
	if n := slices.IndexFunc(t.tried, c.same); n >= 0 {
		c = t.tried[n] // targets whose engines are the same bytes are measured once
		trial.measuredAs(t.result.Trials[n])
	} else if err := t.judge(ctx, c, &trial); err != nil {
		return err
	}
	t.result.Trials, t.tried = append(t.result.Trials, trial), append(t.tried, c)
	return nil
}

// same reports whether another candidate has the same bytes, and runs as they do.
func (c candidate) same(other candidate) bool {
	within := func(in toolchain.Input) string {
		_, name, _ := strings.Cut(in.Name, "/") // in the folder of the candidate
		return name
	}
	return c.engine.Precision == other.engine.Precision && c.tool.loadsAlike(c.engine, other.tool, other.engine) &&
		slices.EqualFunc(c.model.inputs, other.model.inputs, func(a, b toolchain.Input) bool {
			return within(a) == within(b) && a.Digest == b.Digest
		})
}

// measuredAs takes over what was measured of the same bytes.
func (t *Trial) measuredAs(other Trial) {
	t.Verdict, t.Reasons, t.Loss, t.Accuracy = other.Verdict, other.Reasons, other.Loss, other.Accuracy
}

// judge runs a candidate on all cases and compares with the golden outputs.
func (t *tuning) judge(ctx context.Context, c candidate, trial *Trial) (err error) {
	done := t.p.step("compare " + trial.Label())
	defer func() { done(string(trial.Verdict), err) }()
	report, err := t.compared(ctx, c)
	if err != nil {
		return err
	}
	trial.Verdict, trial.Accuracy = report.Verdict, report.Accuracy
	for _, r := range report.Reasons {
		trial.Reasons = append(trial.Reasons, r.Message)
	}
	trial.Loss = t.loss(report)
	return nil
}

// compared runs a candidate on all cases, and reports how its outputs differ from the reference's.
func (t *tuning) compared(ctx context.Context, c candidate) (registry.ParityReport, error) {
	dir := filepath.Join(t.scratch, "run-"+c.id)
	run := c.tool.run(toolchain.RunOptions{Shares: true})
	run.job.Machine, run.job.Inputs = machine(t.node), t.verify.cases.inputs(toolchain.RoleCases)
	run.addCandidate(c)
	results, err := run.do(ctx, dir)
	if err != nil {
		return registry.ParityReport{}, err
	}
	report, _, err := t.verify.parity(ctx, c, runOutputs{root: map[string]string{c.id: dir}, engines: results})
	return report, err
}

// loss is what a report says of the loss; NaN where outputs could not be compared.
func (t *tuning) loss(report registry.ParityReport) registry.Figure {
	switch {
	case len(report.Outputs) == 0 || t.result.Loss == LossAccuracy && report.Accuracy == nil:
		return registry.Figure(math.NaN())
	case t.result.Loss == LossAccuracy:
		return report.Accuracy.Drop
	}
	return noise(report)
}

// noise is minus the ratio of signal to noise of the worst output, in dB, from -quietest
// to quietest.
func noise(report registry.ParityReport) registry.Figure {
	const quietest = 200
	worst := registry.Figure(-quietest)
	for _, o := range report.Outputs {
		if worst = max(worst, -o.SNRdB); math.IsNaN(float64(worst)) {
			return quietest
		}
	}
	return min(worst, quietest)
}
