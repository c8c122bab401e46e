package toolchain

import (
	"context"
	"os"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// chainOption is the option of a compilation in two steps that says what the first step is: its
// toolchain, the file that the second step takes, and its options.
const chainOption = "from"

// After returns the profile of a toolchain that compiles what another one made of the model. form
// is one of the forms of first; by made it. The options of its compilations name the first step
// with its exact tool, so plans, keys and provenance have them. Errors: CodeInvalid for an unknown
// form, and for a toolchain that compiles nothing.
func (p Profile) After(first Profile, form string, by Identity) (Profile, error) {
	if first.Name == "" {
		return Profile{}, registry.Errorf(registry.CodeInvalid, "from: %s compiles nothing", by.Name)
	}
	first, err := first.In(form)
	if err != nil {
		return Profile{}, registry.Errorf(registry.CodeInvalid, "from: %w", err)
	}
	p.Calibrated = first.Calibrated
	own := p.CompileOptions
	p.CompileOptions = func(t artifact.Target, precision string) (map[string]any, error) {
		options, err := own(t, precision)
		if err != nil {
			return nil, err
		}
		before, err := first.CompileOptions(t, precision)
		if err != nil {
			return nil, err
		}
		if form != "" {
			before["form"] = form
		}
		options[chainOption] = map[string]any{"name": by.Name, "version": by.Version,
			"lock": string(by.Lock), "code": string(by.Code), "file": first.Entry, "options": before}
		return options, nil
	}
	return p, nil
}

// FirstLock returns the lock of the toolchain that does the first step of a compilation with these
// options, or "" if it has one step.
func FirstLock(options map[string]any) registry.Digest {
	from, _ := options[chainOption].(map[string]any)
	lock, _ := from["lock"].(string)
	return registry.Digest(lock)
}

// Chain returns the driver of such a toolchain: first compiles the model, and then compiles what
// first left. It is as then for all other verbs. Tuning records are those of then.
func Chain(first, then Driver) Driver { return chained{then, first} }

type chained struct {
	Driver
	first Driver
}

func (c chained) Do(ctx context.Context, job Job, outDir string) (Outcome, error) {
	if job.Verb != VerbCompile {
		return c.Driver.Do(ctx, job, outDir)
	}
	from, _ := job.Options[chainOption].(map[string]any)
	options, ok := from["options"].(map[string]any)
	if !ok {
		return Outcome{}, registry.Errorf(registry.CodeInvalid, "compile: the options do not say what is compiled first")
	}
	tuning := func(in Input) bool { return in.Role == RoleTuning }
	first, folder := job, outDir+"."+chainOption
	first.Options, first.Inputs = options, slices.DeleteFunc(slices.Clone(job.Inputs), tuning)
	defer os.RemoveAll(folder)
	made, err := c.first.Do(ctx, first, folder)
	if err != nil {
		return Outcome{}, registry.Errorf(registry.CodeOf(err), "first, by %s: %w", from["name"], err)
	}
	job.Inputs = slices.DeleteFunc(slices.Clone(job.Inputs), func(in Input) bool { return !tuning(in) })
	for _, f := range made.Files {
		if !strings.HasPrefix(f.Name, TuningFolder+"/") {
			job.Inputs = append(job.Inputs, Input{Role: RoleModel, Name: f.Name, Path: f.Path, Digest: f.Digest, Size: f.Size})
		}
	}
	outcome, err := c.Driver.Do(ctx, job, outDir)
	outcome.Elapsed += made.Elapsed
	return outcome, err
}
