package verify

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// counterpart picks the engine that e would replace, of engines in the order in which nodes get them. That is the one with its label for the same
// machines, or else the one that resolve prefers for this machine. Failing both, it is one for other
// machines that can get e too. Labels alone do not decide, since a builder chooses them: a renamed
// variant would be compared with nothing, or with a weak engine.
func (h Host) counterpart(e artifact.Engine, engines []artifact.Engine) (artifact.Engine, bool) {
	var fit, elsewhere []artifact.Engine
	for _, there := range engines {
		switch {
		case there.Label() == e.Label() && there.Target.Covers(e.Target) && e.Target.Covers(there.Target):
			return there, true
		case h.machineMeets(there.Target):
			fit = append(fit, there)
		case there.Target.Covers(e.Target) || e.Target.Covers(there.Target):
			elsewhere = append(elsewhere, there)
		}
	}
	if len(fit) == 0 {
		fit = elsewhere
	}
	if len(fit) == 0 {
		return artifact.Engine{}, false
	}
	return fit[0], true
}

// Host is this machine, and the toolchains that it has for the engines of a release.
type Host struct {
	Tools   run.Tools
	Node    artifact.Node
	lacking map[string]error // why toolchains of the release's engines cannot be had here
}

// openHost opens ONNX Runtime, and the toolchains of the engines that this machine would run if it had
// them. One that cannot be had here is a runtime that the machine lacks.
func openHost(ctx context.Context, env *run.Env, release artifact.Release) (Host, error) {
	found := make(run.Tools)
	if err := found.Open(ctx, env, run.OnnxRuntime); err != nil {
		return Host{}, err
	}
	lacking := make(map[string]error)
	bare, err := env.Node(ctx, nil)
	if err != nil {
		return Host{}, err
	}
	for _, e := range release.Engines {
		if !(Host{Node: bare}).machineMeets(e.Target) {
			continue
		}
		if lacking[e.Toolchain.Name] != nil {
			continue
		}
		err := found.Open(ctx, env, e.Toolchain.Name)
		if err != nil && ctx.Err() != nil {
			return Host{}, err
		}
		if err != nil {
			lacking[e.Toolchain.Name] = err
		}
	}
	node, err := env.Node(ctx, found.Runtimes())
	return Host{found, node, lacking}, err
}

// choose keeps the engines whose target the machine meets. Errors: CodeWrongNode if it meets none.
func (h Host) choose(release artifact.Release) ([]run.Candidate, []SkippedEngine, error) {
	var candidates []run.Candidate
	var skipped []SkippedEngine
	for _, e := range release.Engines {
		tool, lacks := h.toolOf(e)
		if lacks != nil {
			skipped = append(skipped, *lacks)
			continue
		}
		candidates = append(candidates, run.Candidate{ID: EngineID(len(candidates)), Engine: e, Tool: tool})
	}
	if len(candidates) > 0 {
		return candidates, skipped, nil
	}
	var lines []string
	for _, s := range skipped {
		lines = append(lines, s.String())
	}
	return nil, nil, registry.Errorf(registry.CodeWrongNode,
		"this machine meets no target of %s %s, so nothing can be verified on it:\n  %s",
		release.Model, release.Tag(), strings.Join(lines, "\n  "))
}

// toolOf gives the tool that runs an engine here, or why it does not run here.
func (h Host) toolOf(e artifact.Engine) (run.Tool, *SkippedEngine) {
	if lacks := e.Target.Match(h.Node, h.Node.Runtime()); len(lacks) > 0 {
		return run.Tool{}, &SkippedEngine{e.Label(), lacks, h.why(e)}
	}
	found, ok := h.Tools[e.Toolchain.Name]
	if !ok || found.Profile.CompileOnly {
		return run.Tool{}, &SkippedEngine{e.Label(), []artifact.Mismatch{{Requirement: "toolchain", Need: e.Toolchain.Name}}, h.why(e)}
	}
	return found, nil
}

// machineMeets reports whether this machine meets a target, whatever runtimes it has.
func (h Host) machineMeets(t artifact.Target) bool {
	t.Runtimes = nil
	return len(t.Match(h.Node, h.Node.Runtime())) == 0
}

// why says why the toolchain of an engine cannot be had here; empty if it can, or was not tried.
func (h Host) why(e artifact.Engine) string {
	if err := h.lacking[e.Toolchain.Name]; err != nil {
		return registry.PlainText(err.Error())
	}
	return ""
}

// isNamed reports whether a name means the engine.
func isNamed(e artifact.Engine, name string) bool {
	return slices.Contains([]string{e.Label(), e.Target.Name, e.Variant, e.Digest.String()}, name)
}

// noEngine is the error about a name that no engine of a release has.
func noEngine(r artifact.Release, name string) error {
	var labels []string
	for _, e := range r.Engines {
		labels = append(labels, e.Label())
	}
	return registry.Errorf(registry.CodeNotFound, "%s %s has no engine %.256q: it has %s", r.Model, r.Tag(), name, strings.Join(labels, ", "))
}
