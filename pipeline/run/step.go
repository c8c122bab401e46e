package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Budgets are what the spec gives the steps of toolchains.
func Budgets(s *spec.Spec) map[string]toolchain.Budget {
	all := make(map[string]toolchain.Budget, len(s.Budgets))
	for name, b := range s.Budgets {
		all[name] = toolchain.Budget{Time: time.Duration(b.Time),
			Cores: int(b.Cores), MemoryBytes: int64(b.Memory), GPUs: int(b.GPUs)}
	}
	return all
}

// Step is a step that a driver did, or that the cache remembered.
type Step struct {
	Name    string
	Options map[string]any
	ranges  registry.Digest // of the table that stood in for calibration; empty for none
	Outcome toolchain.Outcome
	Driver  toolchain.Driver // that did it, and what it was asked
	Job     toolchain.Job

	Reproducible evidence.Reproducibility // empty if it was not checked
}

// CachedNote says that nothing was done, and who did it if it was not this machine.
func CachedNote(o toolchain.Origin) string {
	if o.Cache == "" {
		return "cached"
	}
	return "cached in " + o.Cache
}

// Worker does the steps of a build, each in a folder of its own.
type Worker struct {
	Scratch string
	Budgets map[string]toolchain.Budget // by toolchain
}

// Task is a step that a driver is asked for.
type Task struct {
	Name    string
	Job     toolchain.Job
	Options map[string]any
	// rangesFrom is the version of the release whose table of ranges the job may read.
	RangesFrom string
}

// Do has a driver do a step within the budget of its toolchain.
func (w Worker) Do(ctx context.Context, to Reporter, driver toolchain.Driver, s Task) (Step, error) {
	tool, err := driver.Identity(ctx)
	if err != nil {
		return Step{}, err
	}
	s.Job.Budget = w.Budgets[tool.Name]
	out, err := os.MkdirTemp(w.Scratch, "step-*")
	if err != nil {
		return Step{}, err
	}
	ctx, done := to.StepIn(ctx, s.Name)
	outcome, err := driver.Do(ctx, s.Job, filepath.Join(out, "out"))
	cause := context.Cause(ctx)
	stopped := cause != nil && errors.Is(err, cause) // by a signal, or because another step failed
	switch {
	case stopped:
		done("", context.Canceled)
	case err != nil:
		done("", err)
	case outcome.Cached:
		done(s.note(CachedNote(outcome.Origin)), nil)
	default:
		done(s.note(""), nil, outcome.Enforced.String())
	}
	if stopped {
		return Step{}, err
	}
	if err != nil {
		return Step{}, registry.Errorf(registry.CodeOf(err), "%s: %w", s.Name, err)
	}
	return Step{Name: s.Name, Options: s.Options, ranges: rangesOf(s.Job), Outcome: outcome, Driver: driver, Job: s.Job}, nil
}

// note adds to what is said of a step what else a person should know.
func (s Task) note(said string) string {
	if rangesOf(s.Job) == "" {
		return said
	}
	return strings.TrimPrefix(said+", from the ranges of "+s.RangesFrom, ", ")
}

// Provenance says how a step was done, or had been done when it was not done again.
func (s Step) Provenance() Resource {
	said := map[string]any{"cached": s.Outcome.Cached, "elapsedNs": s.Outcome.Elapsed.Nanoseconds(), "options": s.Options}
	if origin := s.Outcome.Origin; origin.Cache != "" {
		said["cachedIn"], said["doneBy"] = origin.Cache, origin.Signer
	}
	if s.Reproducible != "" {
		said["reproducible"] = s.Reproducible
	}
	if s.Outcome.Enforced.Sandbox != "" {
		said["enforced"] = s.Outcome.Enforced
	}
	if s.ranges != "" {
		said["ranges"] = s.ranges
	}
	return Resource{Name: s.Name, Digest: evidence.NewDigestSet(s.Outcome.Key), Annotations: said}
}

// rangesOf is the table of ranges that a job reads; empty for none.
func rangesOf(job toolchain.Job) registry.Digest {
	for _, in := range job.Inputs {
		if in.Role == toolchain.RoleRanges {
			return in.Digest
		}
	}
	return ""
}
