package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

const (
	searchShown = 50
	// searchScanned is how many models a search reads.
	searchScanned = 5000
	// searchRead is how many releases at heads a search reads for targets and toolchains, and searchEvents how many of
	// the newest events for people.
	searchRead   = 300
	searchEvents = 1000
	// shortestPrefix is how many hexadecimal digits a digest needs to be found.
	shortestPrefix = 6
)

// searchView is the page of results.
type searchView struct {
	Query  string
	Hits   []hit
	Cut    bool // there may be more
	Models bool // whether models were searched
}

// hit is something that was found.
type hit struct {
	What string // "model", "release in prod", "evidence in staging"
	Text string
	URL  string
	Hint string
}

func searchPage(config *page.Config, r *http.Request) (page.Answer, error) {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	view := searchView{Query: text}
	if text != "" {
		if err := findModels(r.Context(), config.Registry, strings.ToLower(text), &view); err != nil {
			return page.Answer{}, err
		}
		if err := findPeople(r.Context(), config.Registry, strings.ToLower(text), &view); err != nil {
			return page.Answer{}, err
		}
		if d := registry.Digest(text); d.Validate() == nil {
			if err := findSubjects(r.Context(), config.Registry, d, &view); err != nil {
				return page.Answer{}, err
			}
		}
	}
	return page.Answer{Template: "search", Title: "Search", Body: view, API: page.APIPath + "/models"}, nil
}

// findModels finds models whose name contains the text, and heads whose version or digest begins with it.
func findModels(ctx context.Context, reg api.Interface, text string, view *searchView) error {
	hex := strings.TrimPrefix(text, "sha256:")
	scanned, read := 0, 0
	for after := ""; ; {
		list, err := reg.Models(ctx, "", after, storage.MaxPage)
		if err != nil {
			return err
		}
		for _, m := range list.Items {
			scanned++
			if strings.Contains(m.Name, text) {
				view.Hits = append(view.Hits, hit{"model", m.Name, page.ModelURL(m.Name), ""})
			}
			for _, h := range m.Heads {
				_, digits, _ := strings.Cut(string(h.Release), ":")
				if h.Version == text || len(hex) >= shortestPrefix && strings.HasPrefix(digits, hex) {
					view.Hits = append(view.Hits, hit{"head of " + h.Environment, m.Name + " " + h.Version, page.ReleaseURL(m.Name, h.Release, h.Environment), digits[:min(len(digits), page.ShortDigest)]})
				}
				if read >= searchRead {
					view.Cut = true
				} else if err := findEngines(ctx, reg, h, text, view); err != nil {
					return err
				}
				read++
			}
			if len(view.Hits) >= searchShown || scanned >= searchScanned {
				view.Cut = true
				return nil
			}
		}
		if after = list.Next; after == "" {
			return nil
		}
	}
}

// findSubjects finds the release or engine with a digest that some evidence in the history is about.
func findSubjects(ctx context.Context, reg api.Interface, d registry.Digest, view *searchView) error {
	events, err := reg.History(ctx, history.HistoryQuery{Subject: d, Descending: true, Limit: searchShown})
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, e := range events {
		place := e.Environment + "/" + e.Model
		if seen[place] {
			continue
		}
		seen[place] = true
		h := hit{"release in " + e.Environment, e.Model + " " + e.Version, page.ReleaseURL(e.Model, d, e.Environment), page.DigestOf(d).Short}
		if e.Release != "" && e.Release != d {
			h.What, h.URL = "engine in "+e.Environment, page.EngineURL(e.Model, d, e.Environment)
		}
		view.Hits = append(view.Hits, h)
	}
	return nil
}

// findEngines finds the engines of a head whose target, accelerator or toolchain contains the text.
func findEngines(ctx context.Context, reg api.Interface, h history.Head, text string, view *searchView) error {
	release, err := reg.Release(ctx, h.Environment, h.Model, string(h.Release))
	if err != nil {
		switch registry.CodeOf(err) {
		case registry.CodeForbidden, registry.CodeNotFound, registry.CodeTrust, registry.CodeDigest: // it concerns one model
			return nil
		}
		return err
	}
	for _, e := range release.Engines {
		words := []string{e.Label(), e.Toolchain.Name + " " + e.Toolchain.Version}
		if a := e.Target.Accelerator; a != nil {
			words = append(words, a.String())
		}
		found := slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(word), text) })
		if found && len(view.Hits) < searchShown {
			view.Hits = append(view.Hits, hit{
				"engine in " + h.Environment, h.Model + " " + h.Version + " " + e.Label() + ", " + e.Toolchain.Name + " " + e.Toolchain.Version,
				page.EngineURL(h.Model, e.Digest, h.Environment), page.DigestOf(e.Digest).Short,
			})
		}
	}
	return nil
}

// findPeople finds callers whose name contains the text, in the newest events.
func findPeople(ctx context.Context, reg api.Interface, text string, view *searchView) error {
	events, err := reg.History(ctx, history.HistoryQuery{Descending: true, Limit: searchEvents})
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, e := range events {
		if e.Principal == "" || seen[e.Principal] || !strings.Contains(strings.ToLower(e.Principal), text) {
			continue
		}
		seen[e.Principal] = true
		view.Hits = append(view.Hits, hit{"caller", registry.PlainText(page.NameOf(e.Principal)), page.WithQuery("/history", "principal", e.Principal), ""})
	}
	return nil
}
