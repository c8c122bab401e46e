package registry

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Retention says what a collection leaves alone, beside what is at a head or tagged and
// all that it needs. The zero Retention would leave no time for anything; who wants that
// must have the content to himself.
type Retention struct {
	Grace  time.Duration // what was recorded less than this ago stays
	Heads  int           // so many heads before the present one stay, for rollbacks
	Period time.Duration // as do all that were a head less than this ago
}

// DefaultRetention is what nobody has set otherwise.
func DefaultRetention() Retention {
	return Retention{Grace: 24 * time.Hour, Heads: 10, Period: 90 * 24 * time.Hour}
}

// Validate refuses to keep less than nothing. Errors: CodeInvalid.
func (r Retention) Validate() error {
	if r.Heads < 0 || r.Period < 0 {
		return Errorf(CodeInvalid, "to keep %d earlier heads, and those of %v: want none or more", r.Heads, r.Period)
	}
	return nil
}

// Anchors is what the catalog says must stay in the repositories of one model, in every
// environment, and why.
type Anchors struct {
	Releases map[Digest]string // with all that they need, and all that is said about them
	// Evidence that history names stays whatever becomes of its subject: should the same
	// bytes be built again, all that was ever said about them counts again.
	Evidence map[Digest]string
}

// anchor notes a release or piece of evidence. The first reason stays.
func anchor(at *map[Digest]string, d Digest, why string) {
	if d == "" {
		return
	}
	if *at == nil {
		*at = make(map[Digest]string)
	}
	if _, ok := (*at)[d]; !ok {
		(*at)[d] = why
	}
}

// Anchors gives the anchors of every model. Events are those of the whole history, in
// order. An earlier head is a rollback's aim unless its environment is known to be
// unprotected, where nobody rolls back. Errors: those of events.
func (r Retention) Anchors(envs Environments, heads []Head, intents []Intent, events iter.Seq2[Event, error], now time.Time) (map[string]*Anchors, error) {
	all := make(map[string]*Anchors)
	of := func(model string) *Anchors {
		if all[model] == nil {
			all[model] = new(Anchors)
		}
		return all[model]
	}
	at := make(map[place]Head)
	for _, h := range heads {
		anchor(&of(h.Model).Releases, h.Release, "head of "+h.Environment)
		at[place{h.Environment, h.Model}] = h
	}
	for _, i := range intents {
		if i.Abandoned(envs, at[place{i.Environment, i.Model}], now) == "" {
			anchor(&of(i.Model).Releases, i.Release, "under way to "+i.Environment)
		}
	}
	reigns := make(map[place][]tenure)
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		for _, d := range e.Evidence {
			anchor(&of(e.Model).Evidence, d, fmt.Sprintf("history names it (row %d)", e.Seq))
		}
		reign(reigns, e)
	}
	for place, tenures := range reigns {
		if envs.Unprotected(place.environment) {
			continue
		}
		for _, release := range r.earlier(tenures, now) {
			anchor(&of(place.model).Releases, release, "earlier head of "+place.environment)
		}
	}
	return all, nil
}

// place is where a model has a head.
type place struct{ environment, model string }

// tenure is a release that was a head, and until when. The present one has no end.
type tenure struct {
	release Digest
	until   time.Time
}

// reign notes a head that an event brought. A hold that is lifted brings none.
func reign(all map[place][]tenure, e Event) {
	if e.Release == "" || e.Kind != EventPublish && e.Kind != EventPromote && e.Kind != EventRollback {
		return
	}
	at := place{e.Environment, e.Model}
	if n := len(all[at]); n > 0 {
		all[at][n-1].until = e.Time
	}
	all[at] = append(all[at], tenure{release: e.Release})
}

// earlier lists the releases before the present head that a rollback may want.
func (r Retention) earlier(tenures []tenure, now time.Time) []Digest {
	var kept []Digest
	for i, t := range slices.Backward(tenures) {
		if i == len(tenures)-1 || t.release == tenures[len(tenures)-1].release || slices.Contains(kept, t.release) {
			continue
		}
		if len(kept) < r.Heads || t.until.After(now.Add(-r.Period)) {
			kept = append(kept, t.release)
		}
	}
	return kept
}

// Fate is what becomes of a holding.
type Fate struct {
	Holding
	Why string // why it stays; empty: nothing needs it
	Due bool   // it goes: nothing needs it, and nobody asked for it or for what it is part of
}

// Settlement is what fates ask for.
func (r Retention) Settlement(fates []Fate, now time.Time) Settlement {
	s := Settlement{At: now}
	for _, f := range fates {
		switch {
		case f.Due:
			s.Remove = append(s.Remove, f.Key())
		case f.Why == "" && f.Condemned.IsZero():
			s.Condemn = append(s.Condemn, f.Key())
		case f.Why != "" && !f.Condemned.IsZero():
			s.Rescind = append(s.Rescind, f.Key())
		}
	}
	return s
}

// ModelOf gives the model that a repository is of, and whether it is the repository of its
// sources.
func ModelOf(repository string) (model string, sources bool) {
	_, rest, _ := strings.Cut(repository, "/")
	return strings.CutSuffix(rest, "/"+SourcesComponent)
}
