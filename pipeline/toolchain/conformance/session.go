package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Subject is the driver to check, with a model for it.
type Subject struct {
	// New creates the driver anew, as another process would.
	New func(ctx context.Context) (toolchain.Driver, error)
	// Runtime is the identity of the program that runs engines, if it is not the compiler's.
	Runtime *toolchain.Identity
	Profile toolchain.Profile
	Options map[string]any // of VerbCompile
	Model   string         // path of a small model
	Other   string         // path of a model with the same inputs and other outputs; empty: there is none
	Input   string         // name of the model for the compiler; empty means model.onnx
	Cases   string         // path of a shard of cases for it
	Count   int            // of cases in it
	Want    string         // path of a shard of right outputs; empty: they are not known
	// Accelerators are the vendors of accelerators that the engine is for: a run may use them, and a compilation if the profile needs one.
	Accelerators []string
	Scratch      string // folder for files, which the caller removes
	// CommandLine is true for a compiler that a manifest describes: it has no options and verbs to refuse, and reports every
	// failure alike.
	CommandLine bool
	// Validate checks a result against a definition of docs/reference/driver.schema.json; nil checks what Go reads alone.
	Validate func(definition string, document []byte) error

	compiled  sync.Mutex
	engine    *toolchain.Outcome // once it is compiled
	engineErr error
}

// valid checks a result against the schema, if there is one.
func (s *Subject) valid(definition string, document []byte) error {
	if s.Validate == nil {
		return nil
	}
	if err := s.Validate(definition, document); err != nil {
		return fmt.Errorf("%s is no %s: %w", document, definition, err)
	}
	return nil
}

// made returns an engine of the model. The checks of a subject share it.
func (s *session) made(ctx context.Context) (toolchain.Outcome, error) {
	s.compiled.Lock()
	defer s.compiled.Unlock()
	if s.engine == nil && s.engineErr == nil {
		engine, err := s.compile(ctx, s.Model)
		s.engine, s.engineErr = &engine, err
	}
	if s.engineErr != nil {
		return toolchain.Outcome{}, s.engineErr
	}
	return *s.engine, nil
}

// Skipped is the error of a check that does not apply: the reason.
type Skipped string

// Error returns the reason.
func (s Skipped) Error() string { return string(s) }

// session is one check in progress.
type session struct {
	*Subject
	dir string
	n   int
}

// fresh returns the path of a folder that does not exist.
func (s *session) fresh() string {
	s.n++
	return filepath.Join(s.dir, fmt.Sprintf("out-%d", s.n))
}

// do does a job in a process of its own, and checks that the sandbox is known and that the inputs stay unchanged.
func (s *session) do(ctx context.Context, job toolchain.Job) (toolchain.Outcome, error) {
	driver, err := s.New(ctx)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	outcome, err := driver.Do(ctx, job, s.fresh())
	if err != nil {
		return toolchain.Outcome{}, fmt.Errorf("%s: %w", job.Verb, err)
	}
	if outcome.Enforced.Sandbox == "" || outcome.Enforced.Inputs == "" {
		return outcome, fmt.Errorf("%s: the sandbox that held the driver is not known: %+v", job.Verb, outcome.Enforced)
	}
	for _, in := range job.Inputs {
		if d, _, err := toolchain.HashFile(in.Path); err != nil || d != in.Digest {
			return outcome, fmt.Errorf("%s: the driver changed its input %s to %s (%w)", job.Verb, in.Name, d, err)
		}
	}
	return outcome, nil
}

// compileJob compiles the model.
func (s *session) compileJob(path string) (toolchain.Job, error) {
	model, err := toolchain.FileInput(toolchain.RoleModel, cmp.Or(s.Input, "model.onnx"), path)
	job := toolchain.Job{Verb: toolchain.VerbCompile, Options: s.Options, Inputs: []toolchain.Input{model}}
	if s.Profile.NeedsDevice {
		job.Accelerators = s.Accelerators
	}
	return job, err
}

func (s *session) compile(ctx context.Context, model string) (toolchain.Outcome, error) {
	job, err := s.compileJob(model)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	engine, err := s.do(ctx, job)
	if err != nil {
		return engine, err
	}
	if _, ok := engine.File(s.Profile.Entry); !ok {
		return engine, fmt.Errorf("the engine has the files %v and no %s", slices.Sorted(maps.Keys(digests(engine))), s.Profile.Entry)
	}
	return engine, nil
}

func digests(o toolchain.Outcome) map[string]registry.Digest {
	all := make(map[string]registry.Digest)
	for _, f := range o.Files {
		all[f.Name] = f.Digest
	}
	return all
}
