package proving

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// checkedReports are the reports about the engines of a ref.
type checkedReports struct {
	Ref     string          `json:"ref"`
	Reports []checkedReport `json:"reports"`
}

// checkRef checks the newest reports about the engines of a release, with the figures and limits that
// the registry has.
func checkRef(ctx context.Context, a *program.App, i *wiring.Instance, args []string, o checkOptions) error {
	ref, err := a.Reference(i, args)
	if err != nil {
		return err
	}
	if _, err := i.Envs.Find(ref.Environment); err != nil && len(args) == 1 {
		return registry.Errorf(registry.CodeOf(err), "%s: there is no such file, and %w", args[0], err)
	}
	found, err := inspection.Of(ctx, &i.Registry, ref)
	if err != nil {
		return err
	}
	limits, data, err := inspection.ReadPart(ctx, i.Store, registry.Repository(ref.Environment, ref.Model), found.Release.Limits, validators.ParseLimits)
	if err != nil {
		return err
	}
	checker := refChecker{i, ref, found.Release, &limits, data, o.save}
	all := checkedReports{Ref: found.Ref, Reports: []checkedReport{}}
	pages, labels := []string{ui.Plain(found.Ref) + "\n"}, []string{}
	var failed error
	for _, e := range found.Engines {
		labels = append(labels, e.Label)
		if o.engine != "" && o.engine != e.Label {
			continue
		}
		if e.Parity == nil {
			pages = append(pages, engineReport(e))
			continue
		}
		checked, err := checker.check(ctx, e)
		if err != nil {
			return registry.Errorf(registry.CodeOf(err), "%s: %w", e.Label, err)
		}
		all.Reports, failed = append(all.Reports, checked), errors.Join(failed, checked.err(e.Label))
		pages = append(pages, ui.Plain(e.Label)+"\n"+checkedText(checked))
	}
	if len(all.Reports) == 0 {
		return registry.Errorf(registry.CodeNotFound, "%s: no engine has a report of a trusted verifier, or is called %q: there are %s",
			ui.Plain(found.Ref), o.engine, strings.Join(labels, ", "))
	}
	return errors.Join(a.UI.Result(strings.Join(pages, "\n"), all), failed)
}

// refChecker checks the reports about the engines of a release.
type refChecker struct {
	*wiring.Instance
	ref        registry.Ref
	release    artifact.Release
	limits     *validators.Limits
	limitsJSON []byte
	save       string // folder; empty saves nothing
}

// check judges the report about an engine again.
func (r refChecker) check(ctx context.Context, e inspection.Engine) (checkedReport, error) {
	checked := checkedReport{Engine: e.Label}
	bundle, err := r.Bundle(ctx, r.ref.Environment, r.ref.Model, e.ParityBundle)
	if err != nil {
		return checked, err
	}
	engine, _ := r.release.Engine(e.Digest)
	beside := validators.Beside{Figures: bundle.Figures, Precision: engine.Precision}
	if e.Parity.Limits.Names(r.release.Limits) {
		beside.Limits = r.limits
	}
	if err := checked.check(bundle.Data, beside); err != nil {
		return checked, err
	}
	return checked, r.keep(e.Label, bundle)
}

// keep writes what a report is judged again with into the folder of an engine.
func (r refChecker) keep(label string, bundle evidence.Bundle) error {
	if r.save == "" {
		return nil
	}
	if err := os.MkdirAll(r.save, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.save)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.FromSlash(label), 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"bundle.json": bundle.Data, "figures.safetensors": bundle.Figures, "limits.json": r.limitsJSON} {
		if data == nil {
			continue
		}
		if err := root.WriteFile(filepath.FromSlash(path.Join(label, name)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
