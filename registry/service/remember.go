package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// Remembering is a Service that reads a release, verifies its evidence and asks policy
// once for many resolves. Before each it asks the catalog for the last event of the model
// there: as long as that is the same, so is the head, and so is the evidence, whoever
// writes to the catalog. It is safe for concurrent use.
//
// Environments and trust are those of the Service, for its whole life: who changes them
// makes another.
type Remembering struct {
	*Service
	latest registry.Latest
	known  *lru.Cache[asked, remembered]
}

var _ registry.Interface = (*Remembering)(nil)

// asked is what a resolve asks for, less the node.
type asked struct{ environment, model, version string }

// remembered is a dossier as it was after an event.
type remembered struct {
	dossier
	event registry.Digest
}

// Remember makes s remember up to about so many bytes. latest is of the catalog of s.
func Remember(s *Service, latest registry.Latest, bytes int) *Remembering {
	return &Remembering{Service: s, latest: latest, known: lru.New[asked, remembered](bytes)}
}

// Resolve gives the engine for a node, and why every other candidate lost.
func (m *Remembering) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	environment, err := m.find(q.Environment)
	if err != nil {
		return registry.Resolution{}, err
	}
	if !lasting(environment, q) {
		return m.Service.Resolve(ctx, q)
	}
	d, err := m.recall(ctx, environment, asked{q.Environment, q.Model, q.Version})
	if err != nil {
		return registry.Resolution{}, err
	}
	return d.choose(environment, q)
}

// lasting reports whether nothing but an event can change what is asked for. A head and
// what it is made of cannot be deleted, and neither can a tag of a protected environment.
// Other tags move by a push, and on another registry evidence comes and goes.
func lasting(e registry.Environment, q registry.ResolveQuery) bool {
	return !e.External() && (q.Version == "" || e.Protected() && registry.ValidTag(q.Version))
}

// recall gives what is remembered if nothing has happened since, and else reads it. The
// event is asked for first: what happens while it is read is read again the next time.
func (m *Remembering) recall(ctx context.Context, environment registry.Environment, a asked) (dossier, error) {
	event, err := m.latest.LastEvent(ctx, a.environment, a.model)
	if err != nil {
		return dossier{}, err
	}
	if known, ok := m.known.Get(a); ok && known.event == event {
		return known.dossier, nil
	}
	d, err := m.dossier(ctx, environment, a.model, a.version)
	if err == nil && event != "" {
		m.known.Put(a, remembered{d, event}, d.bytes())
	}
	return d, err
}

// Bytes is about how many bytes are remembered.
func (m *Remembering) Bytes() int { return m.known.Bytes() }

// bytes is about what a dossier takes in memory.
func (d dossier) bytes() int {
	const fixed = 2 << 10 // of a release or an engine, less what policy says of it
	n := fixed
	for _, e := range d.engines {
		n += fixed
		for _, unmet := range e.unmet {
			n += len(unmet)
		}
	}
	return n
}
