package registry

import (
	"fmt"
	"time"
)

// Estate is a snapshot of a repository for [Retention.Judge].
type Estate struct {
	Holdings []Holding
	Links    map[Digest]Links  // of every manifest in Holdings
	Anchors  Anchors           // of the repository's model
	Wanted   map[Digest]string // digests that other repositories need from this one, with the reason
}

// Judge decides what to do with each holding, in their order. A manifest is kept with all
// content that it mentions, its referrers and its subject. So an engine and its evidence are
// deleted together or kept together. Unreferenced content is due for deletion once it and
// everything that contains it have been marked for at least wait. With a wait of 0 it is due at
// once; use that only with exclusive access.
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

	// A recent use of something also delays the deletion of its parts.
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

// root returns why a holding is kept by itself, or "".
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

// tour walks the holdings of a repository. It identifies them by index.
type tour struct {
	Estate
	at        map[Digest][]int // a digest can be both a manifest and a blob of the repository
	referrers map[Digest][]int
	why       []string // why each was reached; empty if it was not
	next      []int
}

func newTour(e Estate) *tour {
	t := &tour{
		Estate:    e,
		at:        make(map[Digest][]int, len(e.Holdings)),
		referrers: make(map[Digest][]int),
		why:       make([]string, len(e.Holdings)),
	}
	for i, h := range e.Holdings {
		t.at[h.Digest] = append(t.at[h.Digest], i)
		if subject := e.Links[h.Digest].Subject; h.Manifest && subject != "" {
			t.referrers[subject] = append(t.referrers[subject], i)
		}
	}
	return t
}

// reach marks a holding as reached. Only the first reason is kept.
func (t *tour) reach(i int, why string) {
	if t.why[i] == "" {
		t.why[i] = why
		t.next = append(t.next, i)
	}
}

// spread reaches all content that belongs to reached holdings, optionally with subjects.
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
