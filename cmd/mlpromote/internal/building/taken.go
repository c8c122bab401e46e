package building

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
)

// takenVersion is a protected environment that has the version of a plan as another release.
// Versions there never change, so that promote would refuse what is built now.
type takenVersion struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Version     string          `json:"version"`
	Release     registry.Digest `json:"release"`
}

// takenIn looks a plan's version up in the protected environments. What cannot be read is
// passed over: promote will say it.
func takenIn(ctx context.Context, i *wiring.Instance, plan plan.Plan) []takenVersion {
	var taken []takenVersion
	for _, e := range i.Envs.List {
		if !e.Protected() {
			continue
		}
		if r, err := i.Release(ctx, e.Name, plan.Model, plan.Version); err == nil && r.Plan != plan.Digest {
			taken = append(taken, takenVersion{e.Name, plan.Model, plan.Version, r.Digest})
		}
	}
	return taken
}

// takenHere is takenIn for a verb that needs no registry: none, or one that cannot be opened
// now, says nothing.
func takenHere(ctx context.Context, a *program.App, plan plan.Plan) []takenVersion {
	if _, err := os.Stat(a.Data); a.Registry == "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var taken []takenVersion
	err := a.With(ctx, func(i *wiring.Instance) error {
		taken = takenIn(ctx, i, plan)
		return nil
	})
	if err != nil && a.UI.Verbose {
		a.UI.Note("whether the version exists elsewhere is not known: %v", err)
	}
	return taken
}

func warnTaken(a *program.App, taken []takenVersion) {
	for _, t := range taken {
		a.UI.Note("warning: version %s of %s exists in %s with another digest (%s), so that promote will refuse this one: choose a new version",
			t.Version, t.Model, t.Environment, ui.Short(t.Release))
	}
}
