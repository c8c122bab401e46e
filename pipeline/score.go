package pipeline

import (
	"context"
	"path"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
)

// roleProgram is that of the program that computes a metric.
const roleProgram = "program"

// readProgram reads the program that a spec names for its metric, and puts its digest into the limit.
func (in *inputs) readProgram(s *spec.Spec) error {
	if !in.Limits.Accuracy.ByProgram() {
		return nil
	}
	written := s.Limits.Accuracy.Program.Written
	program, err := specFiles{s.Files}.input(written, roleProgram, path.Base(written), refuseCode)
	if err != nil {
		return inside("limits.accuracy.program", err)
	}
	limit := *in.Limits.Accuracy
	limit.Program = program.Digest
	in.Limits.Accuracy, in.program = &limit, &program
	return nil
}

// scorer runs the program of a metric on outputs, once for each folder of them.
type scorer struct {
	p       *Pipeline
	program *toolchain.Input // nil: the metric needs none
	cases   material
	outputs []registry.Shard  // their files in each folder
	known   map[string]scored // by folder
}

// scored is what a program gave, or why it gave nothing.
type scored struct {
	scores []float64
	fault  error
}

func newScorer(p *Pipeline, program *toolchain.Input, cases, golden material) *scorer {
	return &scorer{p, program, cases, golden.set.Shards, make(map[string]scored)}
}

// of returns the scores of outputs, which have the names of the shards of the cases.
func (s *scorer) of(ctx context.Context, dir string) ([]float64, error) {
	if known, ok := s.known[dir]; ok {
		return known.scores, known.fault
	}
	scores, err := s.run(ctx, dir)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.known[dir] = scored{scores, err}
	return scores, err
}

func (s *scorer) run(ctx context.Context, dir string) ([]float64, error) {
	if s.p.Score == nil || s.program == nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "the program of the metric cannot be run here")
	}
	job := toolchain.ScoreJob{Program: *s.program, Count: s.cases.set.Count}
	var err error
	if job.Cases, err = shardInputs(s.cases.dir, s.cases.set.Shards); err != nil {
		return nil, err
	}
	if job.Outputs, err = shardInputs(dir, s.outputs); err != nil {
		return nil, err
	}
	return s.p.Score(ctx, job)
}

// shardInputs hashes the files of shards in a folder.
func shardInputs(dir string, shards []registry.Shard) ([]toolchain.Input, error) {
	var inputs []toolchain.Input
	for _, shard := range shards {
		in, err := toolchain.FileInput("", shard.File, filepath.Join(dir, filepath.FromSlash(shard.File)))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// withScores adds to a comparison what the program of the metric gives to both sides. fault is why it gave
// nothing: accuracy is then not measured.
func (v verification) withScores(ctx context.Context, run *parity.Run) (fault string) {
	if run.Labels.Metric.Needs != accuracy.NeedsProgram {
		return ""
	}
	reference, err := v.scorer.of(ctx, run.Golden)
	var engine []float64
	if err == nil {
		engine, err = v.scorer.of(ctx, run.Engine)
	}
	for _, score := range append(append([]float64(nil), reference...), engine...) {
		if err == nil {
			err = accuracy.CheckScore(score, run.Labels.Metric.Loss)
		}
	}
	if err != nil {
		run.Labels = parity.Labels{}
		return err.Error()
	}
	run.Labels.Scores = &parity.Scores{Reference: reference, Engine: engine}
	return ""
}

// tryProgram runs the program of the metric on the golden outputs, so that one that does not work is
// refused before anything is signed. Where this machine cannot run it, that is a warning. Errors:
// CodeInvalid for what the program gives; those of running it, and of ctx.
func (m maker) tryProgram(ctx context.Context, p *Pipeline, golden goldenSet) error {
	limit := m.plan.Limits.Accuracy
	if !limit.ByProgram() {
		return nil
	}
	done := p.step("score the reference")
	scores, err := m.scoreGolden(ctx, p, golden)
	done("", err)
	if registry.HasCode(err, registry.CodeUnavailable) && ctx.Err() == nil {
		p.warn("the program of the metric was not tried, so verify has to find out whether it works: " + err.Error())
		return nil
	}
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "limits.accuracy.program: %w", err)
	}
	for _, score := range scores {
		if err := accuracy.CheckScore(score, validators.LessIsBetter(limit.Metric)); err != nil {
			return registry.Errorf(registry.CodeInvalid, "limits.accuracy.program: %w", err)
		}
	}
	return nil
}

func (m maker) scoreGolden(ctx context.Context, p *Pipeline, golden goldenSet) ([]float64, error) {
	if p.Score == nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "programs cannot be run here")
	}
	job := toolchain.ScoreJob{Program: *m.inputs.program, Cases: m.inputs.Cases.Files, Count: m.inputs.Cases.Record.Count}
	for _, file := range golden.files {
		in, err := toolchain.FileInput("", filepath.Base(file.Path), file.Path)
		if err != nil {
			return nil, err
		}
		job.Outputs = append(job.Outputs, in)
	}
	return p.Score(ctx, job)
}
