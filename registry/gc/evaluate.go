package gc

import (
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Snapshot is the state of a repository for [Retention.Evaluate].
type Snapshot struct {
	Records []storage.GCRecord
	Links   map[registry.Digest]artifact.Links // of every manifest in Records
	Roots   Roots                              // of the repository's model
	Wanted  map[registry.Digest]string         // digests that other repositories need from this one, with the reason
}

// Evaluate decides what to do with each record, in their order. A manifest is kept with all
// content that it mentions, its referrers and its subject. So an engine and its evidence are
// deleted together or kept together. Unreferenced content is due for deletion once it and
// everything that contains it have been marked for at least wait. With a wait of 0 it is due at
// once; use that only with exclusive access.
func (r Retention) Evaluate(e Snapshot, now time.Time, wait time.Duration) []Outcome {
	staying := newWalker(e)
	for i, h := range e.Records {
		if why := r.root(e, h, now); why != "" {
			staying.visit(i, why)
		}
	}
	staying.expand(true)
	for i, h := range e.Records {
		if why := e.Roots.Evidence[h.Digest]; why != "" {
			staying.visit(i, why)
		}
	}
	staying.expand(false)

	// A recent use of something also delays the deletion of its parts.
	waiting := newWalker(e)
	for i, h := range e.Records {
		if staying.why[i] == "" && wait > 0 && (h.Marked.IsZero() || h.Marked.After(now.Add(-wait))) {
			waiting.visit(i, "it waits")
		}
	}
	waiting.expand(true)

	outcomes := make([]Outcome, len(e.Records))
	for i, h := range e.Records {
		outcomes[i] = Outcome{GCRecord: h, KeptBecause: staying.why[i], Delete: staying.why[i] == "" && waiting.why[i] == ""}
	}
	return outcomes
}

// root returns why a record is kept by itself, or "".
func (r Retention) root(e Snapshot, h storage.GCRecord, now time.Time) string {
	if why := e.Roots.Releases[h.Digest]; h.Manifest && why != "" {
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

// walker walks the records of a repository. It identifies them by index.
type walker struct {
	Snapshot
	at        map[registry.Digest][]int // a digest can be both a manifest and a blob of the repository
	referrers map[registry.Digest][]int
	why       []string // why each was reached; empty if it was not
	next      []int
}

func newWalker(e Snapshot) *walker {
	t := &walker{
		Snapshot:  e,
		at:        make(map[registry.Digest][]int, len(e.Records)),
		referrers: make(map[registry.Digest][]int),
		why:       make([]string, len(e.Records)),
	}
	for i, h := range e.Records {
		t.at[h.Digest] = append(t.at[h.Digest], i)
		if subject := e.Links[h.Digest].Subject; h.Manifest && subject != "" {
			t.referrers[subject] = append(t.referrers[subject], i)
		}
	}
	return t
}

// visit marks a record as reached. Only the first reason is kept.
func (t *walker) visit(i int, why string) {
	if t.why[i] == "" {
		t.why[i] = why
		t.next = append(t.next, i)
	}
}

// expand visits all content that belongs to reached records, optionally with subjects.
func (t *walker) expand(subjects bool) {
	for len(t.next) > 0 {
		i := t.next[len(t.next)-1]
		t.next = t.next[:len(t.next)-1]
		h := t.Records[i]
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

func (t *walker) reachAll(indexes []int, why string) {
	for _, i := range indexes {
		t.visit(i, why)
	}
}
