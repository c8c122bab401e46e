package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// refuses checks that a job is refused as CodeInvalid, and leaves nothing.
func refuses(jobOf func(context.Context, *session) (toolchain.Job, error)) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		job, err := jobOf(ctx, s)
		if err != nil {
			return err
		}
		driver, err := s.New(ctx)
		if err != nil {
			return err
		}
		out := s.fresh()
		_, err = driver.Do(ctx, job, out)
		switch {
		case err == nil:
			return errors.New("it does the job: want an error")
		case s.CommandLine && job.Verb == toolchain.VerbCompile:
		case job.Verb == toolchain.VerbRun && registry.HasCode(err, registry.CodeWrongNode): // an engine for no machine
		case !registry.HasCode(err, registry.CodeInvalid):
			return fmt.Errorf("want the error bad_input, unsupported_format or unsupported_op, and it fails otherwise: %w", err)
		}
		return left(out)
	}
}

// left is the error of a job that left files.
func left(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("a job that ended with an error left %s", entries[0].Name())
	}
	return err
}

func (s *session) garbage() (string, error) {
	path := filepath.Join(s.dir, "garbage")
	return path, os.WriteFile(path, []byte("\xff\xfe this is no model in any format at all"), 0o600)
}

func withoutModel(_ context.Context, s *session) (toolchain.Job, error) {
	return toolchain.Job{Verb: toolchain.VerbCompile, Options: s.Options}, nil
}

func garbageModel(_ context.Context, s *session) (toolchain.Job, error) {
	path, err := s.garbage()
	if err != nil {
		return toolchain.Job{}, err
	}
	return s.compileJob(path)
}

func unknownOption(_ context.Context, s *session) (toolchain.Job, error) {
	job, err := s.compileJob(s.Model)
	job.Options = map[string]any{"no_such_option": true}
	maps.Copy(job.Options, s.Options)
	return job, err
}

func unknownVerb(_ context.Context, s *session) (toolchain.Job, error) {
	job, err := s.compileJob(s.Model)
	job.Verb, job.Options = toolchain.VerbImport, nil
	return job, err
}

func withoutCases(ctx context.Context, s *session) (toolchain.Job, error) {
	job, err := s.runJob(ctx, s.Cases)
	job.Inputs = slices.DeleteFunc(job.Inputs, func(in toolchain.Input) bool { return in.Role == toolchain.RoleCases })
	return job, err
}

func garbageEngine(ctx context.Context, s *session) (toolchain.Job, error) {
	job, err := s.runJob(ctx, s.Cases)
	if err != nil {
		return job, err
	}
	path, err := s.garbage()
	if err != nil {
		return job, err
	}
	entry := slices.IndexFunc(job.Inputs, func(in toolchain.Input) bool { return in.Name == "engine/"+s.Profile.Entry })
	job.Inputs[entry], err = toolchain.FileInput(toolchain.RoleModel, job.Inputs[entry].Name, path)
	return job, err
}

func unknownLoadOption(ctx context.Context, s *session) (toolchain.Job, error) {
	job, err := s.runJob(ctx, s.Cases)
	if err == nil {
		job.Run.Engines[0].Load = map[string]string{"no_such_option": "1"}
	}
	return job, err
}

// stopAfter is soon enough that no compilation is done.
const stopAfter = 50 * time.Millisecond

func stop(ctx context.Context, s *session) error {
	job, err := s.compileJob(s.Model)
	if err != nil {
		return err
	}
	driver, err := s.New(ctx)
	if err != nil {
		return err
	}
	out := s.fresh()
	bounded, cancel := context.WithTimeout(ctx, stopAfter)
	defer cancel()
	_, err = driver.Do(bounded, job, out)
	if err == nil {
		return nil // it was faster
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a job that was stopped ended with another error: %w", err)
	}
	return left(out)
}
