package resolution

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Cache remembers releases with verified evidence and policy results for resolve. Before each
// resolve it asks the catalog for the last event of the model in the
// environment, for the last one that restricted anything there, and whether the catalog keeps more
// adverse evidence about the model. Unchanged events mean an unchanged head, evidence and restriction
// list, whoever writes to the catalog. Others can add evidence to a repository on another registry, which
// is read again after externalTime. It is safe for concurrent use.
type Cache struct {
	backend *backend.Backend
	latest  storage.Latest
	known   *lru.Cache[asked, *remembered]
}

// asked identifies the question of a resolve, without the node.
type asked struct{ environment, model, version string }

// remembered is a Resolvable as of two events. Each is read once, so that its address is the ground of
// all resolutions from it.
type remembered struct {
	Resolvable
	event, restriction registry.Digest
	adverse            int64 // changes that kept adverse evidence
	until              time.Time
}

// externalTime is how long a release on another registry is remembered.
const externalTime = time.Minute

// NewCache returns an empty cache of about the given number of bytes. latest must use the catalog of s.
func NewCache(s *backend.Backend, latest storage.Latest, bytes int) *Cache {
	return &Cache{backend: s, latest: latest, known: lru.New[asked, *remembered](bytes)}
}

// Resolve returns the engine for a node, and the reasons why each other candidate was rejected.
func (c *Cache) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	environment, err := c.backend.Find(q.Environment)
	if err != nil {
		return api.Resolution{}, err
	}
	if !lasting(environment, q) {
		return Resolve(ctx, c.backend, q)
	}
	d, err := c.recall(ctx, environment, asked{q.Environment, q.Model, q.Version})
	if err != nil {
		return api.Resolution{}, err
	}
	if q.Known != nil && q.Known.Ground == any(d) {
		return *q.Known, nil
	}
	answer, err := d.Choose(environment, q)
	answer.Ground = d
	return answer, err
}

// Standing lists the engines of a head, with the reasons why no node is given one.
func (c *Cache) Standing(ctx context.Context, environment, model string) ([]api.Candidate, error) {
	e, err := c.backend.Find(environment)
	if err != nil {
		return nil, err
	}
	var d *remembered
	if lasting(e, api.ResolveQuery{}) {
		d, err = c.recall(ctx, e, asked{environment: environment, model: model})
	} else {
		d = new(remembered)
		d.Resolvable, err = Read(ctx, c.backend, e, model, "")
	}
	if err != nil {
		return nil, err
	}
	all := make([]api.Candidate, 0, len(d.engines))
	for _, e := range d.engines {
		all = append(all, api.Candidate{Engine: e.Digest, Label: e.Label(), Reasons: e.refused()})
	}
	return all, nil
}

// lasting reports whether only an event can change the answer. A head and its content cannot be
// deleted, nor can a tag of a protected environment. Other tags move by a push, and so do those on
// another registry.
func lasting(e policy.Environment, q api.ResolveQuery) bool {
	return q.Version == "" || !e.External() && e.Protected() && registry.ValidTag(q.Version)
}

// recall returns the cached Resolvable if its events are still the last ones, and otherwise reads it.
// It asks for the events before reading, so that a concurrent change is read again the next
// time.
func (c *Cache) recall(ctx context.Context, environment policy.Environment, a asked) (*remembered, error) {
	event, err := c.latest.LastEvent(ctx, a.environment, a.model)
	if err != nil {
		return nil, err
	}
	restriction, err := c.latest.LastEvent(ctx, a.environment, "") // a restriction list has no model
	if err != nil {
		return nil, err
	}
	adverse, err := c.latest.AdverseChanges(ctx, a.model)
	if err != nil {
		return nil, err
	}
	known, ok := c.known.Get(a)
	if ok && known.event == event && known.restriction == restriction && known.adverse == adverse &&
		(known.until.IsZero() || c.backend.Now().Before(known.until)) {
		return known, nil
	}
	var until time.Time
	if environment.External() {
		until = c.backend.Now().Add(externalTime)
	}
	d, err := Read(ctx, c.backend, environment, a.model, a.version)
	if err != nil {
		return nil, err
	}
	read := &remembered{d, event, restriction, adverse, until}
	if event != "" {
		c.known.Put(a, read, d.bytes())
	}
	return read, nil
}

// Bytes returns the approximate size of the cache in bytes.
func (c *Cache) Bytes() int { return c.known.Bytes() }

// bytes returns the approximate memory size of a Resolvable.
func (d Resolvable) bytes() int {
	const fixed = 2 << 10 // of a release or an engine, without policy results
	n := fixed
	for _, b := range d.lost {
		n += len(b.Data) + len(b.Manifest)
	}
	for _, e := range d.engines {
		n += fixed
		for _, unmet := range e.unmet {
			n += len(unmet.Detail) + unmet.Size()
		}
	}
	return n
}
