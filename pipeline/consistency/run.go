package consistency

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// outcome is what a run left: the folder of each shard's outputs, or why there are none.
type outcome struct {
	dir    map[string]string
	failed map[string]error
}

// run runs shards in one process. If that fails, each group of them has a process of its own, so
// that one that fails does not take the others along. Errors: those of ctx.
func run(ctx context.Context, runner Runner, groups [][]shard, dir string) (outcome, error) {
	made := outcome{make(map[string]string), make(map[string]error)}
	all := slices.Concat(groups...)
	if len(all) == 0 {
		return made, nil
	}
	outputs, err := runner(ctx, inputs(all), filepath.Join(dir, "together"))
	if err == nil || ctx.Err() != nil || len(groups) == 1 {
		for _, s := range all {
			made.note(s, outputs, err)
		}
		return made, ctx.Err()
	}
	for i, group := range groups {
		outputs, err := runner(ctx, inputs(group), filepath.Join(dir, strconv.Itoa(i)))
		if ctx.Err() != nil {
			return made, ctx.Err()
		}
		for _, s := range group {
			made.note(s, outputs, err)
		}
	}
	return made, nil
}

func (o outcome) note(s shard, dir string, err error) {
	if err != nil {
		o.failed[s.Name] = err
		return
	}
	o.dir[s.Name] = dir
}

func inputs(shards []shard) []Input {
	all := make([]Input, len(shards))
	for i, s := range shards {
		all[i] = s.Input
	}
	return all
}

// Reference runs the reference model on all inputs on which it must be known what it computes, and keeps the runner for others, which
// are run when an engine gives a reason to. Where it fails, an engine is not judged. Errors: those of ctx.
func (s *Set) Reference(ctx context.Context, runner Runner) error {
	s.model = runner
	var groups [][]shard
	for _, t := range s.trials {
		if t.needsReference() {
			groups = append(groups, t.shards)
		}
	}
	done, err := run(ctx, runner, groups, filepath.Join(s.Scratch, "reference"))
	if err != nil {
		return err
	}
	s.reference = done
	return nil
}

// refer runs the reference model on the inputs of a trial, if it was not run on them before. Errors: those of ctx.
func (s *Set) refer(ctx context.Context, t trial) error {
	first := t.shards[0].Name
	if s.reference.dir[first] != "" || s.reference.failed[first] != nil {
		return nil //nolint:nilerr // who needs the outputs finds the failure
	}
	done, err := run(ctx, s.model, [][]shard{t.shards}, filepath.Join(s.Scratch, "reference-"+strings.TrimSuffix(first, ".safetensors")))
	if err != nil {
		return err
	}
	maps.Copy(s.reference.dir, done.dir)
	maps.Copy(s.reference.failed, done.failed)
	return nil
}

// Engine runs an engine, in a process of its own, and says what the checks found. Dir is a folder
// for files. Errors: those of files and of ctx.
func (s *Set) Engine(ctx context.Context, e Engine, dir string) (Found, error) {
	found := &findings{set: s, engine: e, late: s.late}
	var groups [][]shard
	if len(s.repeat) > 0 {
		groups = append(groups, s.repeat)
	}
	for _, t := range s.trials {
		groups = append(groups, t.shards)
	}
	done, err := run(ctx, e.Run, groups, filepath.Join(dir, "runs"))
	if err != nil {
		return Found{}, err
	}
	if len(s.repeat) > 0 {
		if err := found.again(ctx, done); err != nil {
			return Found{}, err
		}
		if err := found.loads(ctx, done, filepath.Join(dir, "loads")); err != nil {
			return Found{}, err
		}
	}
	for _, t := range s.trials {
		if err := found.trial(ctx, t, done); err != nil {
			return Found{}, err
		}
	}
	found.checks = append(found.checks, s.leftOut...)
	found.nothing()
	return Found{found.checks, found.reasons, found.open}, nil
}
