package gc

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Retention configures the content that garbage collection keeps, in addition to heads, tagged
// manifests and all content that they need. The zero Retention has no grace period; use it only with exclusive
// access.
type Retention struct {
	Grace  time.Duration // keep content that was recorded less than this ago
	Heads  int           // keep this many heads before the current one, for rollbacks
	Period time.Duration // keep releases that were a head less than this ago
}

// DefaultRetention returns the retention that applies unless configured otherwise.
func DefaultRetention() Retention {
	return Retention{Grace: 24 * time.Hour, Heads: 10, Period: 90 * 24 * time.Hour}
}

// Validate refuses negative values. Errors: CodeInvalid.
func (r Retention) Validate() error {
	if r.Heads < 0 || r.Period < 0 {
		return registry.Errorf(registry.CodeInvalid, "keep %d earlier heads, and heads of the last %v: want 0 or more", r.Heads, r.Period)
	}
	return nil
}

// Roots lists the content that the catalog requires to stay in the repositories of one model, in all
// environments, with the reason.
type Roots struct {
	Releases map[registry.Digest]string // kept with all content that they need and all evidence about them
	// Evidence that the history names is kept even if its subject is deleted. If the same bytes
	// are built again, all earlier evidence about them counts again.
	Evidence map[registry.Digest]string
}

// addRoot adds a release or a piece of evidence. The first reason stays.
func addRoot(at *map[registry.Digest]string, d registry.Digest, why string) {
	if d == "" {
		return
	}
	if *at == nil {
		*at = make(map[registry.Digest]string)
	}
	if _, ok := (*at)[d]; !ok {
		(*at)[d] = why
	}
}

// Roots returns the roots of every model. events is the whole history, in order. An earlier
// head is kept for rollbacks unless its environment is known to be unprotected, because such
// environments have no rollbacks. Errors: those of events.
func (r Retention) Roots(
	envs policy.Environments,
	heads []history.Head,
	intents []history.Intent,
	events iter.Seq2[history.Event, error],
	now time.Time,
) (map[string]*Roots, error) {
	all := make(map[string]*Roots)
	of := func(model string) *Roots {
		if all[model] == nil {
			all[model] = new(Roots)
		}
		return all[model]
	}
	at := make(map[place]history.Head)
	for _, h := range heads {
		addRoot(&of(h.Model).Releases, h.Release, "head of "+h.Environment)
		at[place{h.Environment, h.Model}] = h
	}
	for _, i := range intents {
		if i.Abandoned(envs, at[place{i.Environment, i.Model}], now) == "" {
			addRoot(&of(i.Model).Releases, i.Release, "under way to "+i.Environment)
		}
	}
	reigns := make(map[place][]tenure)
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		for _, d := range e.Evidence {
			addRoot(&of(e.Model).Evidence, d, fmt.Sprintf("history names it (event %d)", e.Seq))
		}
		addTenure(reigns, e)
	}
	for place, tenures := range reigns {
		if envs.Unprotected(place.environment) {
			continue
		}
		for _, release := range r.earlier(tenures, now) {
			addRoot(&of(place.model).Releases, release, "earlier head of "+place.environment)
		}
	}
	return all, nil
}

// place is a model in an environment.
type place struct{ environment, model string }

// tenure is a release that was a head, and until when. That of the current head has no end.
type tenure struct {
	release registry.Digest
	until   time.Time
}

// addTenure adds the head that an event set. Releasing a hold does not set a head.
func addTenure(all map[place][]tenure, e history.Event) {
	if e.Release == "" || e.Kind != history.EventPublish && e.Kind != history.EventPromote && e.Kind != history.EventRollback {
		return
	}
	at := place{e.Environment, e.Model}
	if n := len(all[at]); n > 0 {
		all[at][n-1].until = e.Time
	}
	all[at] = append(all[at], tenure{release: e.Release})
}

// earlier lists the releases before the current head that a rollback could need.
func (r Retention) earlier(tenures []tenure, now time.Time) []registry.Digest {
	var kept []registry.Digest
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

// Outcome is the fate of a record.
type Outcome struct {
	storage.GCRecord
	KeptBecause string // why it is kept; empty: it is unreferenced
	Delete      bool   // it is unreferenced, and neither it nor anything that contains it was used
}

// Changes returns what outcomes change.
func (r Retention) Changes(outcomes []Outcome, now time.Time) storage.GCChanges {
	s := storage.GCChanges{At: now}
	for _, f := range outcomes {
		switch {
		case f.Delete:
			s.Delete = append(s.Delete, f.Key())
		case f.KeptBecause == "" && f.Marked.IsZero():
			s.Mark = append(s.Mark, f.Key())
		case f.KeptBecause != "" && !f.Marked.IsZero():
			s.Unmark = append(s.Unmark, f.Key())
		}
	}
	return s
}
