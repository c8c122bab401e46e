package run

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Works reports whether the runtime itself starts on this machine.
func (t Tool) Works(ctx context.Context, scratch string, node artifact.Node) bool {
	dir, err := os.MkdirTemp(scratch, "probe-*")
	if err != nil {
		return false
	}
	_, err = t.Timing.Do(ctx, toolchain.Job{Verb: toolchain.VerbProbe, Machine: Machine(node)}, filepath.Join(dir, "out"))
	return err == nil
}

// LoadsAlike reports whether the same bytes would be loaded alike as one engine and as the other: by
// the same runtime, load profile and providers, on the same kind of accelerator.
func (t Tool) LoadsAlike(engine artifact.Engine, by Tool, other artifact.Engine) bool {
	sameProvider := func(a, b artifact.Provider) bool { return a.Name == b.Name && maps.Equal(a.Options, b.Options) }
	return t.Identity.Name == by.Identity.Name && reflect.DeepEqual(engine.Load, other.Load) &&
		reflect.DeepEqual(engine.Target.Accelerator, other.Target.Accelerator) &&
		slices.EqualFunc(engine.Providers, other.Providers, sameProvider)
}

// Tool is an open toolchain.
type Tool struct {
	Toolchain
	Identity toolchain.Identity // of the compiler
	Runtime  toolchain.Identity // of the program that runs engines; of most toolchains the same
	// Served is set if a model server runs the engine in place of the runtime.
	Served *evidence.Served
	Labels string // the tensor of the cases with labels, which a user's own program does not get; empty if there is none
}

// InPlace names the model server that runs engines in place of the runtime of the toolchain; empty for none.
func (t Tool) InPlace() string {
	if t.Served == nil || t.Profile.Server != "" {
		return ""
	}
	return t.Served.By
}

// Tools are the toolchains that a build or a verification works with, by name.
type Tools map[string]Tool

// Open adds a toolchain, installing it where the pipeline was told to.
func (t Tools) Open(ctx context.Context, env *Env, name string) error {
	return t.open(ctx, env, name, true)
}

// OpenCompiler adds a toolchain for a build, which works without the program that runs its engines: Runtime is empty then.
func (t Tools) OpenCompiler(ctx context.Context, env *Env, name string) error {
	return t.open(ctx, env, name, false)
}

func (t Tools) open(ctx context.Context, env *Env, name string, runs bool) error {
	if _, ok := t[name]; ok {
		return nil
	}
	opened, err := env.Toolchain(ctx, name)
	if err != nil {
		return err
	}
	identity, err := opened.Engines.Identity(ctx)
	if err != nil {
		return err
	}
	runtime := identity
	if opened.Timing != nil {
		runtime, err = opened.Timing.Identity(ctx)
		if err != nil && (runs || !registry.HasCode(err, registry.CodeUnavailable)) {
			return err
		}
	}
	t[name] = Tool{Toolchain: opened, Identity: identity, Runtime: runtime}
	return nil
}

// names lists the tools, in order.
func (t Tools) names() []string { return slices.Sorted(maps.Keys(t)) }

// Runtimes is what the tools bring to the machine that has them.
func (t Tools) Runtimes() map[string]string {
	found := make(map[string]string, len(t))
	for name, tool := range t {
		if tool.Profile.Name != "" && tool.Runtime.Version != "" { // what only quantizes runs nothing
			found[name] = tool.Runtime.Version
		}
	}
	return found
}

// Planning gives the tools as a plan sees them.
func (t Tools) Planning(ctx context.Context) (map[string]plan.Tool, error) {
	seen := make(map[string]plan.Tool, len(t))
	for name, tool := range t {
		known := plan.Tool{Profile: tool.Profile, Identity: tool.Identity, Code: []registry.Digest{tool.Identity.Code}}
		if tool.Quantizer != nil {
			quantizer, err := tool.Quantizer.Identity(ctx)
			if err != nil {
				return nil, err
			}
			if quantizer.Code != tool.Identity.Code {
				known.Code = append(known.Code, quantizer.Code)
			}
		}
		seen[name] = known
	}
	return seen, nil
}
