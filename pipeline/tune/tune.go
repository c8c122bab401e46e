package tune

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tradeoff"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Options bound a tuning.
type Options struct {
	Budget time.Duration // of wall time; what is under way when it is spent is finished. 0 means none
}

// tuning tries the candidates of a spec, one after the other.
type tuning struct {
	env      *run.Env
	began    time.Time
	deadline time.Time      // zero for none
	spec     *spec.Spec     // with all candidates as its variants
	only     []spec.Variant // the candidates, if not all that the spec has
	build.Maker
	verify verify.Session
	tried  []run.Candidate // by trial
	result Result
}

// Tune makes every candidate of the spec for the targets that this machine meets, measures
// them, and chooses by the spec's objective. When ctx ends or the budget is spent, the
// result has what was measured until then; the error is that of ctx. Errors:
// CodeWrongNode when this machine meets no target; those of building the reference.
func Tune(ctx context.Context, env *run.Env, s *spec.Spec, o Options) (Result, error) {
	temp, err := tempdir.New("tune")
	if err != nil {
		return Result{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	t := &tuning{env: env, began: env.Time()}
	if o.Budget > 0 {
		t.deadline = t.began.Add(o.Budget)
	}
	if err := t.begin(ctx, s, scratch); err != nil {
		return Result{}, err
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
	node, err := t.env.Node(ctx, nil)
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
	t.Worker, t.Baseline = run.Worker{Scratch: scratch}, &build.Baseline{}
	if t.Prepared, err = build.Prepare(ctx, t.env, t.spec, t.Worker, build.Options{}); err != nil {
		return err
	}
	if t.Node, err = t.env.Node(ctx, t.Tools.Runtimes()); err != nil {
		return err
	}
	golden, err := build.RunReference(ctx, t.Maker, t.env.Report())
	if err != nil {
		return err
	}
	t.result.Model, t.result.Node, t.result.Goal, t.result.Loss = t.Plan.Model, t.Node, s.Objective.Goal(), LossNoise
	if t.Plan.Cases.Labels != "" {
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
func (t *tuning) verification(golden goldenset.Set) (verify.Session, error) {
	given, err := t.material("cases", t.Inputs.Cases.Files)
	if err != nil {
		return verify.Session{}, err
	}
	cases, err := t.material("cases-for-candidates", t.Inputs.Cases.Engines())
	if err != nil {
		return verify.Session{}, err
	}
	outputs := run.Material{Dir: filepath.Dir(golden.Files[0].Path), Set: &golden.Set}
	return verify.Session{Env: t.env, Subject: verify.Subject{Began: verify.Beginning{StartedOn: t.began.UTC()}}, Scratch: t.Scratch,
		Host: verify.Host{Tools: t.Tools, Node: t.Node}, Fetched: verify.Fetched{Expected: verify.Expected{Limits: t.Plan.Limits, Iface: t.Plan.Interface,
			Cases: cases, Golden: outputs, Changed: t.Inputs.Cases.Changed, Scorer: run.NewScorer(t.env, t.Inputs.Program, given, outputs)}}}, nil
}

// material links files of the cases in a new folder.
func (t *tuning) material(folder string, files []toolchain.Input) (run.Material, error) {
	m := run.Material{Dir: filepath.Join(t.Scratch, folder), Set: &t.Inputs.Cases.Record}
	if err := os.Mkdir(m.Dir, 0o755); err != nil {
		return m, err
	}
	for _, in := range files {
		m.Files = append(m.Files, artifact.File{Path: in.Name, Digest: in.Digest, Size: in.Size})
		if err := os.Symlink(in.Path, filepath.Join(m.Dir, in.Name)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// try makes and judges the candidates, one after the other, while there is time: half of
// the budget, since the rest is for latencies.
func (t *tuning) try(ctx context.Context) error {
	for i, planned := range t.Plan.Engines {
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
	return t.env.Time().Sub(t.began) > time.Duration(share*float64(whole))
}

func (t *tuning) tryOne(ctx context.Context, i int, planned plan.Engine) error {
	made, err := build.MakeEngine(ctx, t.Maker, t.env.Report(), planned)
	if err != nil {
		return err
	}
	variant, ok := t.spec.Variant(planned.Variant)
	if !ok {
		return registry.Errorf(registry.CodeInternal, "no variant %s", planned.Variant)
	}
	c := run.Candidate{ID: verify.EngineID(i), Engine: made.Engine, Tool: made.Tool}
	trial := Trial{Target: planned.Target.Name, Variant: planned.Variant,
		Precision: planned.Precision, Spec: variant.Written().Flow()}
	if c.Model, err = run.LoadableOutput(made.Tool.Profile, c.ID, made.Files); err != nil {
		return err
	}
	for _, f := range made.Files {
		trial.SizeBytes += f.Size
	}
	if n := slices.IndexFunc(t.tried, c.Same); n >= 0 {
		c = t.tried[n] // targets whose engines are the same bytes are measured once
		trial.measuredAs(t.result.Trials[n])
	} else if err := t.judge(ctx, c, &trial); err != nil {
		return err
	}
	t.result.Trials, t.tried = append(t.result.Trials, trial), append(t.tried, c)
	return nil
}

// measuredAs takes over what was measured of the same bytes.
func (t *Trial) measuredAs(other Trial) {
	t.Verdict, t.Reasons, t.Loss, t.Accuracy = other.Verdict, other.Reasons, other.Loss, other.Accuracy
}

// judge runs a candidate on all cases and compares with the golden outputs.
func (t *tuning) judge(ctx context.Context, c run.Candidate, trial *Trial) (err error) {
	done := t.env.Step("compare " + trial.Label())
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
func (t *tuning) compared(ctx context.Context, c run.Candidate) (evidence.ParityReport, error) {
	dir := filepath.Join(t.Scratch, "run-"+c.ID)
	execution := c.Tool.Run(toolchain.RunOptions{Shares: true})
	execution.Job.Machine, execution.Job.Inputs = run.Machine(t.Node), t.verify.Cases.Inputs(toolchain.RoleCases)
	execution.AddCandidate(c)
	results, err := execution.Do(ctx, dir)
	if err != nil {
		return evidence.ParityReport{}, err
	}
	report, _, err := verify.Parity(ctx, t.verify, c, verify.RunOutputs{Root: map[string]string{c.ID: dir}, Engines: results})
	return report, err
}

// loss is what a report says of the loss; NaN where outputs could not be compared.
func (t *tuning) loss(report evidence.ParityReport) evidence.Figure {
	switch {
	case len(report.Outputs) == 0 || t.result.Loss == LossAccuracy && report.Accuracy == nil:
		return evidence.Figure(math.NaN())
	case t.result.Loss == LossAccuracy:
		return report.Accuracy.Drop
	}
	return noise(report)
}

// noise is minus the ratio of signal to noise of the worst output, in dB, from -quietest
// to quietest.
func noise(report evidence.ParityReport) evidence.Figure {
	const quietest = 200
	worst := evidence.Figure(-quietest)
	for _, o := range report.Outputs {
		if worst = max(worst, -o.SNRdB); math.IsNaN(float64(worst)) {
			return quietest
		}
	}
	return min(worst, quietest)
}
