package registry

import (
	"fmt"
	"time"
)

// Estate is a repository as [Retention.Judge] sees it.
type Estate struct {
	Holdings []Holding
	Links    map[Digest]Links  // of every manifest in Holdings
	Anchors  Anchors           // of the repository's model
	Wanted   map[Digest]string // what other repositories need of this one, and why
}

// Judge says what becomes of each holding, in their order. A manifest stands with all that
// it mentions, with what refers to it and with what it refers to: an engine and its
// evidence go together or stay together. What nothing needs is due when it has been
// condemned for the wait, and so has all that it is a part of. Without a wait, for who has
// the repository to himself, it is due at once.
func (r Retention) Judge(e Estate, now time.Time, wait time.Duration) []Fate {
	staying := newTour(e)
	for i, h := range e.Holdings {
		if why := r.root(e, h, now); why != "" {
			staying.reach(i, why)
		}
	}
	staying.spread(true)
	for i, h := range e.Holdings {
		if why := e.Anchors.Evidence[h.Digest]; why != "" {
			staying.reach(i, why)
		}
	}
	staying.spread(false)

	// What somebody asked for of late holds up all that it is made of.
	waiting := newTour(e)
	for i, h := range e.Holdings {
		if staying.why[i] == "" && wait > 0 && (h.Condemned.IsZero() || h.Condemned.After(now.Add(-wait))) {
			waiting.reach(i, "it waits")
		}
	}
	waiting.spread(true)

	fates := make([]Fate, len(e.Holdings))
	for i, h := range e.Holdings {
		fates[i] = Fate{Holding: h, Why: staying.why[i], Due: staying.why[i] == "" && waiting.why[i] == ""}
	}
	return fates
}

// root says why a holding stays by itself, or nothing.
func (r Retention) root(e Estate, h Holding, now time.Time) string {
	if why := e.Anchors.Releases[h.Digest]; h.Manifest && why != "" {
		return why
	}
	if len(h.Tags) > 0 {
		return "tag " + h.Tags[0]
	}
	if why := e.Wanted[h.Digest]; why != "" {
		return why
	}
	if h.Created.After(now.Add(-r.Grace)) {
		return fmt.Sprintf("younger than %v", r.Grace)
	}
	return ""
}

// tour goes over the holdings of a repository, by their index.
type tour struct {
	Estate
	at        map[Digest][]int // a manifest may belong to the repository as a blob too
	referrers map[Digest][]int
	why       []string // why each was reached; empty: it was not
	next      []int
}

func newTour(e Estate) *tour {
	t := &tour{Estate: e, at: make(map[Digest][]int, len(e.Holdings)), referrers: make(map[Digest][]int), why: make([]string, len(e.Holdings))}
	for i, h := range e.Holdings {
		t.at[h.Digest] = append(t.at[h.Digest], i)
		if subject := e.Links[h.Digest].Subject; h.Manifest && subject != "" {
			t.referrers[subject] = append(t.referrers[subject], i)
		}
	}
	return t
}

// reach notes that a holding was reached. The first reason is the one that is told.
func (t *tour) reach(i int, why string) {
	if t.why[i] == "" {
		t.why[i] = why
		t.next = append(t.next, i)
	}
}

// spread reaches all that belongs to what was reached, with subjects or without.
func (t *tour) spread(subjects bool) {
	for len(t.next) > 0 {
		i := t.next[len(t.next)-1]
		t.next = t.next[:len(t.next)-1]
		h := t.Holdings[i]
		if !h.Manifest {
			continue
		}
		links := t.Links[h.Digest]
		for _, d := range links.Mentions {
			t.reachAll(t.at[d], "part of "+string(h.Digest))
		}
		t.reachAll(t.referrers[h.Digest], "about "+string(h.Digest))
		if subjects {
			t.reachAll(t.at[links.Subject], "subject of "+string(h.Digest))
		}
	}
}

func (t *tour) reachAll(indexes []int, why string) {
	for _, i := range indexes {
		t.reach(i, why)
	}
}
