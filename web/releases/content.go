package releases

import (
	"context"
	"encoding/base64"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/web/page"
)

// input is that, ready to be shown.
type input struct {
	Name    string
	Picture template.URL
	Text    string
}

const (
	// maxPictures is how many bytes of pictures a page has at most, so that it stays below 100 KiB.
	maxPictures = 24 << 10
	// maxShifts is how many classes a table of shifts has at most.
	maxShifts = 20
)

// addCases adds what only readers of the sources may see: the inputs of the worst cases, and which classes shifted.
func addCases(config *page.Config, r *http.Request, view *engineView, in Read, e artifact.Engine, files []artifact.File) error {
	if config.Content == nil || len(view.Worst) == 0 && view.figures == nil {
		return nil
	}
	environments, err := config.Registry.Environments(r.Context())
	if err != nil {
		return err
	}
	first := environments.First()
	if first.External() { // its content is not here
		return nil
	}
	err = config.Authorize(r.Context(), storage.PermissionRead, first.Name, in.Model+"/"+registry.SourcesComponent)
	if registry.HasCode(err, registry.CodeForbidden) {
		view.NoSources = "You may not read the sources of this model, so the inputs of cases are not shown."
		return nil
	}
	if err != nil {
		return err
	}
	at := page.CaseAt{Sources: registry.SourcesRepository(first.Name, in.Model), Digest: e.Sources, Files: files}
	if err := addInputs(r.Context(), config, view, at); err != nil {
		return withoutSources(config.Logger, r, view, err)
	}
	return withoutSources(config.Logger, r, view, addShifts(r.Context(), config, view, in, at))
}

// withoutSources is the page of an engine whose sources cannot be read: they may have been collected since.
func withoutSources(logger *slog.Logger, r *http.Request, view *engineView, err error) error {
	if err == nil {
		return nil
	}
	if registry.HasCode(err, registry.CodeUnavailable) && r.Context().Err() != nil {
		return err
	}
	view.NoSources, _ = page.Explain(logger, r, err)
	view.NoSources = "The cases cannot be read: " + view.NoSources
	return nil
}

func addInputs(ctx context.Context, config *page.Config, view *engineView, at page.CaseAt) error {
	left := maxPictures
	shown := make(map[int]string) // by case, the output beside which its inputs are
	for i := range view.Worst {
		at.Case = view.Worst[i].number
		if of, again := shown[at.Case]; again {
			view.Worst[i].Inputs = []input{{Text: "the inputs beside " + of}}
			continue
		}
		shown[at.Case] = view.Worst[i].Output
		inputs, err := config.Content.Inputs(ctx, at)
		if err != nil {
			return err
		}
		for _, one := range inputs {
			next := input{Name: registry.PlainText(one.Name), Text: registry.PlainText(one.Text)}
			if size := base64.StdEncoding.EncodedLen(len(one.PNG)); one.PNG != nil && size <= left {
				left -= size
				next.Picture = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(one.PNG)) //nolint:gosec // made here of bytes
			}
			if next.Picture != "" || next.Text != "" {
				view.Worst[i].Inputs = append(view.Worst[i].Inputs, next)
			}
		}
	}
	return nil
}

// shift is how the answers to the cases of a class shifted.
type shift struct {
	Class     string
	Cases     int
	Lost, Won string
	Taken     []taken
	Rest      int // cases with other answers
}

// taken is a wrong turn: what the reference answers and what the engine does.
type taken struct{ Reference, Engine, Cases string }

// takenShown is how many of them a class lists.
const takenShown = 5

// takenOf describes what was taken for what in a class.
func takenOf(c validators.ClassShift) (all []taken, rest int) {
	class := func(n int64) string {
		if n < 0 {
			return "no answer"
		}
		return page.Number(n)
	}
	for i, t := range c.Taken {
		if i >= takenShown {
			rest += t.Cases
			continue
		}
		all = append(all, taken{class(t.Reference), class(t.Engine), registry.Count(t.Cases, "case")})
	}
	return all, rest
}

// addShifts adds the classes whose answers shifted, by the per-case figures of the report.
func addShifts(ctx context.Context, config *page.Config, view *engineView, in Read, at page.CaseAt) error {
	if view.figures == nil {
		return nil
	}
	labels, err := config.Content.Labels(ctx, at.Sources, at.Digest)
	if err != nil || labels == nil {
		return err
	}
	bundle, err := config.Registry.Bundle(ctx, in.environment, in.Model, view.figures.bundle)
	if err != nil || len(bundle.Figures) == 0 {
		return err
	}
	if err := view.figures.file.CheckFile(bundle.Figures); err != nil {
		return err
	}
	all, err := validators.Shifts(bundle.Figures, labels)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Lost == 0 && c.Won == 0 && len(c.Taken) == 0 || len(view.Shifts) == maxShifts {
			continue
		}
		one := shift{Class: page.Number(c.Class), Cases: c.Cases, Lost: fmt.Sprintf("%.3g", c.Lost), Won: fmt.Sprintf("%.3g", c.Won)}
		one.Taken, one.Rest = takenOf(c)
		view.Shifts = append(view.Shifts, one)
		view.Taken = view.Taken || len(one.Taken) > 0
	}
	view.Shifted = len(all) > 0
	return nil
}
