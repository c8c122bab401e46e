package build

import (
	"context"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
)

// tryProgram runs the program of the metric on the golden outputs, so that one that does not work is
// refused before anything is signed. Where this machine cannot run it, that is a warning. Errors:
// CodeInvalid for what the program gives; those of running it, and of ctx.
func tryProgram(ctx context.Context, m Maker, env *run.Env, golden goldenset.Set) error {
	limit := m.Plan.Limits.Accuracy
	if !limit.ByProgram() {
		return nil
	}
	done := env.Step("score the reference")
	scores, err := scoreGolden(ctx, m, env, golden)
	done("", err)
	if registry.HasCode(err, registry.CodeUnavailable) && ctx.Err() == nil {
		env.Caution("the program of the metric was not tried, so verify has to find out whether it works: " + err.Error())
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

func scoreGolden(ctx context.Context, m Maker, env *run.Env, golden goldenset.Set) ([]float64, error) {
	if env.Score == nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "programs cannot be run here")
	}
	job := toolchain.ScoreJob{Program: *m.Inputs.Program, Cases: m.Inputs.Cases.Files, Count: m.Inputs.Cases.Record.Count}
	for _, file := range golden.Files {
		in, err := toolchain.FileInput("", filepath.Base(file.Path), file.Path)
		if err != nil {
			return nil, err
		}
		job.Outputs = append(job.Outputs, in)
	}
	return env.Score(ctx, job)
}
