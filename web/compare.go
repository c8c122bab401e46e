package web

import (
	"cmp"
	"net/http"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// compareView is the page that shows two releases of a model beside each other.
type compareView struct {
	Model, ModelURL string
	A, B            side
	Changes         []string // from A to B
	Looser          []string // limits of B that allow more than those of A
	Tighter         []string // limits of A that allow more than those of B
	Interface       []string // what a caller of A would notice of B
	Documents       bool     // whether limits and interfaces were compared
	Rows            []comparedEngine
}

// side is one of the two releases.
type side struct {
	Version, URL, Environment string
	Digest                    digest
}

// comparedEngine is an engine of one of the releases, or of both.
type comparedEngine struct {
	Label string
	A, B  *engineRow // nil: the release does not have it
}

// figures are those of one release.
type figures struct{ Row *engineRow }

// Of gives the figures of a release, "a" or "b".
func (c comparedEngine) Of(name string) figures {
	if name == "a" {
		return figures{c.A}
	}
	return figures{c.B}
}

// compareURL is the page that compares two releases of a model.
func compareURL(model string, a, b registry.Digest) string {
	return with(modelURL(model)+separator+"compare", "a", string(a), "b", string(b))
}

func (s *site) comparePage(r *http.Request, model string) (answer, error) {
	query := r.URL.Query()
	var sides [2]read
	for i, name := range []string{"a", "b"} {
		d := registry.Digest(query.Get(name))
		if d.Validate() != nil {
			return answer{}, registry.Errorf(registry.CodeInvalid, "%s=%.80q: want the digest of a release; the page of the model links to comparisons", name, d)
		}
		_, _, err := s.place(r.Context(), "", func(environment string) (err error) {
			sides[i], err = s.readRelease(r.Context(), environment, model, string(d))
			return err
		})
		if err != nil {
			return answer{}, err
		}
	}
	a, b := sides[0], sides[1]
	view := compareView{
		Model: model, ModelURL: modelURL(model), A: sideOf(a), B: sideOf(b), Changes: differences(a.Release, b.Release), Rows: enginesOf(a, b),
	}
	if s.Compare != nil {
		was, is := located(a), located(b)
		forth, err := s.Compare(r.Context(), is, was)
		if err != nil {
			return answer{}, err
		}
		back, err := s.Compare(r.Context(), was, is)
		if err != nil {
			return answer{}, err
		}
		view.Looser, view.Tighter, view.Interface, view.Documents = plain(forth.Looser), plain(back.Looser), plain(forth.Interface), true
	}
	return answer{
		template: "compare", title: view.A.Version + " and " + view.B.Version + " of " + model, nav: "Models", body: view,
		api: modelAPI(model, "release", "environment", b.environment, "ref", string(b.Digest)),
	}, nil
}

func sideOf(in read) side {
	return side{in.Tag(), releaseURL(in.Model, in.Digest, in.environment), in.environment, digestOf(in.Digest)}
}

func located(in read) registry.Located {
	return registry.Located{Repository: registry.Repository(in.environment, in.Model), Release: in.Release}
}

func plain(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, registry.PlainText(line))
	}
	return all
}

// enginesOf lists the engines of two releases by label.
func enginesOf(a, b read) []comparedEngine {
	var all []comparedEngine
	at := make(map[string]int)
	for _, in := range []read{a, b} {
		for _, e := range in.Engines {
			view := row(in, e)
			i, ok := at[e.Label()]
			if !ok {
				i = len(all)
				at[e.Label()], all = i, append(all, comparedEngine{Label: registry.PlainText(e.Label())})
			}
			if in.Digest == b.Digest && in.environment == b.environment {
				all[i].B = &view
			}
			if in.Digest == a.Digest && in.environment == a.environment {
				all[i].A = &view
			}
		}
	}
	slices.SortStableFunc(all, func(x, y comparedEngine) int { return cmp.Compare(x.Label, y.Label) })
	return all
}
