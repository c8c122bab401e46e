package releases

import (
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/web/page"
)

// compareView is the page that shows two releases of a model beside each other.
type compareView struct {
	Model, ModelURL string
	A, B            Side
	Changes         []string // from A to B
	Looser          []string // limits of B that allow more than those of A
	Tighter         []string // limits of A that allow more than those of B
	Interface       []string // what a caller of A would notice of B
	Documents       bool     // whether limits and interfaces were compared
	Rows            []comparedEngine
}

// Uncounted reports whether operators of an engine were not counted.
func (v compareView) Uncounted() bool {
	return slices.ContainsFunc(v.Rows, func(c comparedEngine) bool { return c.Unknown })
}

// SameOperators reports whether operators are known of each engine that both releases have, and the same.
func (v compareView) SameOperators() bool {
	return !slices.ContainsFunc(v.Rows, func(c comparedEngine) bool { return c.Unknown || len(c.Changed) > 0 })
}

// comparedEngine is an engine of one of the releases, or of both.
type comparedEngine struct {
	Label string
	A, B  *EngineRow // nil: the release does not have it

	Operators string // how their operators compare; empty if one release does not have it
	Unknown   bool   // they do not
	Changed   []operatorChange
}

// operatorChange is an operator that one of two engines has more often.
type operatorChange struct {
	Name    string
	State   page.State
	Was, Is string
}

// figures are those of one release.
type figures struct{ Row *EngineRow }

// Of returns the figures of a release, "a" or "b".
func (c comparedEngine) Of(name string) figures {
	if name == "a" {
		return figures{c.A}
	}
	return figures{c.B}
}

// ComparePage compares two releases of a model, a and b in the query. Errors: CodeInvalid for a query without two digests; errors of the
// registry.
func ComparePage(config *page.Config, r *http.Request, model string) (page.Answer, error) {
	query := r.URL.Query()
	var sides [2]Read
	for i, name := range []string{"a", "b"} {
		d := registry.Digest(query.Get(name))
		if d.Validate() != nil {
			return page.Answer{}, registry.Errorf(registry.CodeInvalid,
				"%s=%.80q: want the digest of a release; the page of the model links to comparisons", name, d)
		}
		_, _, err := FindPlace(r.Context(), config.Registry, "", func(environment string) (err error) {
			sides[i], err = ReadRelease(r.Context(), config.Registry, environment, model, string(d))
			return err
		})
		if err != nil {
			return page.Answer{}, err
		}
	}
	a, b := sides[0], sides[1]
	found, err := api.CompareSides(r.Context(), config.Compare, a.side(), b.side())
	if err != nil {
		return page.Answer{}, err
	}
	view := compareView{
		Model: model, ModelURL: page.ModelURL(model), A: sideOf(a), B: sideOf(b), Changes: page.Plain(found.Changes), Rows: enginesOf(a, b, found.Engines),
		Looser: page.Plain(found.Looser), Tighter: page.Plain(found.Tighter), Interface: page.Plain(found.Differs), Documents: !found.Partly,
	}
	return page.Answer{
		Template: "compare", Title: view.A.Version + " and " + view.B.Version + " of " + model, Nav: "Models", Body: view,
		API: page.ModelAPI(model, "comparison", "from", string(a.Digest), "to", string(b.Digest)),
	}, nil
}

// enginesOf describes the engines of two releases, by label.
func enginesOf(a, b Read, compared []api.ComparedEngine) []comparedEngine {
	var all []comparedEngine
	for _, c := range compared {
		one := comparedEngine{Label: registry.PlainText(c.Label), A: rowOf(a, c.From), B: rowOf(b, c.To)}
		one.census(c)
		all = append(all, one)
	}
	return all
}

// rowOf describes an engine of a release; nil if it has none.
func rowOf(in Read, d registry.Digest) *EngineRow {
	e, ok := in.Engine(d)
	if !ok {
		return nil
	}
	view := row(in, e)
	return &view
}

// census says which operators changed.
func (c *comparedEngine) census(of api.ComparedEngine) {
	switch {
	case of.From == "" || of.To == "":
	case of.OperatorsOf == "":
		c.Operators, c.Unknown = "not counted", true
	case len(of.Operators) == 0:
		c.Operators = "the same"
	default:
		c.Operators = registry.Count(len(of.Operators), "operator differs", "operators differ")
	}
	if of.OperatorsOf == evidence.CensusOfGraph {
		c.Operators += ", counted in the graph that its compiler took"
	}
	for _, o := range of.Operators {
		change := operatorChange{Name: registry.PlainText(strings.TrimPrefix(o.Operator, "ai.onnx.")), Was: page.Number(int64(o.Was)), Is: page.Number(int64(o.Is)), State: page.StateOf(page.ClassPlain, "other count")}
		switch {
		case o.Was == 0:
			change.State = page.StateOf(page.ClassWait, "appeared")
		case o.Is == 0:
			change.State = page.StateOf(page.ClassWait, "vanished")
		}
		c.Changed = append(c.Changed, change)
	}
}
