package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// Subject is the driver to check, with a model for it.
type Subject struct {
	// New creates the driver anew, as another process would.
	New     func(ctx context.Context) (toolchain.Driver, error)
	Profile toolchain.Profile
	Options map[string]any // of VerbCompile
	Model   string         // path of a small model
	Input   string         // name of the model for the compiler; empty means model.onnx
	Cases   string         // path of a shard of cases for it
	Count   int            // of cases in it
	Want    string         // path of a shard of right outputs; empty: they are not known
	Scratch string         // folder for files, which the caller removes
	// CommandLine is true for a compiler that a manifest describes: it has no options and verbs to refuse, and reports every
	// failure alike.
	CommandLine bool
	// Validate checks a result against a definition of docs/reference/driver.schema.json; nil checks what Go reads alone.
	Validate func(definition string, document []byte) error

	compiled  sync.Mutex
	engine    *toolchain.Outcome // once it is compiled
	engineErr error
}

// Check is one promise of the protocol.
type Check struct {
	Name string
	// Promise is the driver's duty, as a sentence.
	Promise string
	// Runs is true if the check runs an engine, which drivers that only compile cannot.
	Runs bool
	// Speaks is true if the check is about the protocol of a compiler, which one with a command line does not speak.
	Speaks bool
	do     func(ctx context.Context, s *session) error
}

// Checks returns all checks, in the order in which a writer of a driver meets them.
func Checks() []Check {
	return []Check{
		{Name: "identity", Promise: "name, version and code are known and stay the same, and probe confirms the version", do: identity},
		{Name: "compile", Promise: "an engine has its entry, and the bytes that the profile promises", do: compileTwice},
		{Name: "run", Promise: "each case has outputs, a load time and a timing in each round", Runs: true, do: run},
		{Name: "right", Promise: "the outputs are right", Runs: true, do: right},
		{Name: "repeat", Promise: "two processes compute the same bytes", Runs: true, do: repeat},
		{Name: "batch", Promise: "cases with a batch dimension of their own have the same outputs", Runs: true, do: batch},
		{Name: "empty job", Promise: "a compilation without a model is refused", do: refuses(withoutModel)},
		{Name: "garbage model", Promise: "a file that is no model is refused", do: refuses(garbageModel)},
		{Name: "unknown option", Promise: "an option of the compiler that it does not know is refused", Speaks: true, do: refuses(unknownOption)},
		{Name: "unknown verb", Promise: "a verb that it does not have is refused", Speaks: true, do: refuses(unknownVerb)},
		{Name: "no cases", Promise: "a run without cases is refused", Runs: true, do: refuses(withoutCases)},
		{Name: "garbage engine", Promise: "a file that is no engine is refused", Runs: true, do: refuses(garbageEngine)},
		{Name: "unknown load option", Promise: "a load option that it does not know is refused", Runs: true, do: refuses(unknownLoadOption)},
		{Name: "stop", Promise: "a job that is stopped ends, and leaves nothing", do: stop},
	}
}

// ErrSkipped is the error of a check that does not apply. Its text is the reason.
var ErrSkipped = errors.New("skipped")

// Run does a check in a folder of its own. It returns nil if the driver keeps the promise, and an [ErrSkipped] if the check does
// not apply to it.
func (c Check) Run(ctx context.Context, of *Subject) error {
	if c.Runs && of.Profile.CompileOnly {
		return fmt.Errorf("%w: nothing runs its engines", ErrSkipped)
	}
	if c.Speaks && of.CommandLine {
		return fmt.Errorf("%w: its compiler has a command line, which the manifest writes", ErrSkipped)
	}
	dir, err := os.MkdirTemp(of.Scratch, "check-*")
	if err != nil {
		return err
	}
	return c.do(ctx, &session{Subject: of, dir: dir})
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
		engine, err := s.compile(ctx)
		s.engine, s.engineErr = &engine, err
	}
	if s.engineErr != nil {
		return toolchain.Outcome{}, s.engineErr
	}
	return *s.engine, nil
}

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
