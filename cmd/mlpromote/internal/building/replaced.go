package building

import (
	"context"
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// shownBreaks is how many differences of two interfaces a warning names.
const shownBreaks = 2

// warnReplaced warns if the newest release of the model seems to be of another model with the same name: its spec is another file, or its
// interface does not fit and nothing shows that the spec is the same. A release that cannot be read is no reason for a warning.
func warnReplaced(ctx context.Context, a *program.App, i *wiring.Instance, env *run.Env, s *spec.Spec, planned plan.Plan) {
	first := i.Envs.First().Name
	r, err := i.Release(ctx, first, planned.Model, "")
	if err != nil || r.Plan == planned.Digest {
		return
	}
	claims, _, err := i.Claims(ctx, first, r)
	if err != nil {
		return
	}
	var was, is evidence.GitOrigin
	if from := inspection.Origin(r, claims); from != nil {
		was = from.Git
	}
	if from, err := env.Origin(ctx, s.File, s.Files.Opened()); err == nil && from != nil {
		is = from.Git
	}
	how := ""
	switch {
	case otherSpec(is, was):
		how = fmt.Sprintf("is of %s, and this build of %s", specText(was), specText(is))
	case is.Repository == "" || was.Repository == "":
		iface, _, err := inspection.ReadPart(ctx, i.Store, registry.Repository(first, r.Model), r.Interface, validators.ParseInterface)
		if breaks := planned.Interface.Breaks(iface); err == nil && len(breaks) > 0 {
			how = "has another interface than this build (" + strings.Join(breaks[:min(shownBreaks, len(breaks))], "; ") + ")"
		}
	}
	if how != "" {
		a.UI.Note("warning: %s %s, the newest release in %s, %s: if they are two models, give this one another name in the spec, or each replaces the other",
			planned.Model, r.Tag(), first, registry.PlainText(how))
	}
}

// otherSpec reports whether two specs are known to be different files.
func otherSpec(is, was evidence.GitOrigin) bool {
	if is.Commit == "" || was.Commit == "" {
		return false
	}
	return is.Spec != was.Spec || is.Repository != "" && was.Repository != "" && is.Repository != was.Repository
}

func specText(git evidence.GitOrigin) string {
	if git.Repository == "" {
		return git.Spec
	}
	return git.Spec + " of " + git.Repository
}
