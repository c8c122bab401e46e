package run

import (
	"context"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// RoleProgram is that of the program that computes a metric.
const RoleProgram = "program"

// Scorer runs the program of a metric on outputs, once for each folder of them.
type Scorer struct {
	env     *Env
	program *toolchain.Input // nil: the metric needs none
	cases   Material
	outputs []artifact.Shard  // their files in each folder
	known   map[string]scored // by folder
}

// scored is what a program gave, or why it gave nothing.
type scored struct {
	scores []float64
	fault  error
}

// NewScorer returns a scorer of outputs for the cases. The program is nil if the metric needs none; the golden set has
// the shards that outputs are divided into.
func NewScorer(env *Env, program *toolchain.Input, cases, golden Material) *Scorer {
	return &Scorer{env, program, cases, golden.Set.Shards, make(map[string]scored)}
}

// Of returns the scores of outputs, which have the names of the shards of the cases.
func (s *Scorer) Of(ctx context.Context, dir string) ([]float64, error) {
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

func (s *Scorer) run(ctx context.Context, dir string) ([]float64, error) {
	if s.env.Score == nil || s.program == nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "the program of the metric cannot be run here")
	}
	job := toolchain.ScoreJob{Program: *s.program, Count: s.cases.Set.Count}
	var err error
	if job.Cases, err = shardInputs(s.cases.Dir, s.cases.Set.Shards); err != nil {
		return nil, err
	}
	if job.Outputs, err = shardInputs(dir, s.outputs); err != nil {
		return nil, err
	}
	return s.env.Score(ctx, job)
}

// shardInputs hashes the files of shards in a folder.
func shardInputs(dir string, shards []artifact.Shard) ([]toolchain.Input, error) {
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
