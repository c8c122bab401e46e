package operations

import (
	"context"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// forgetAfter is how long a replica that ended is listed.
const forgetAfter = 24 * time.Hour

// Presence says of a replica that it is there, until it ends. All fields are required.
type Presence struct {
	Name     string // of the document, unique among replicas
	Replicas storage.Replicas
	Clock    storage.CatalogClock
	// Describe returns what the replica says of itself; Name, Started, Seen, Collection and Stopped are set here.
	Describe func() storage.Replica
	Every    time.Duration
	Fault    func(err error) // gets what went wrong

	mu         sync.Mutex
	started    time.Time
	collection *storage.CollectionRun
}

// Collected remembers a garbage collection that ended.
func (p *Presence) Collected(run storage.CollectionRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.collection = &run
}

// Run says that the replica is there, again and again until ctx ends, and then that it stopped. Its last collection is
// kept over a restart.
func (p *Presence) Run(ctx context.Context) {
	if before, err := p.Replicas.Get(ctx, p.Name); err == nil && before.Collection != nil {
		p.Collected(*before.Collection)
	}
	ticker := time.NewTicker(p.Every)
	defer ticker.Stop()
	for {
		if err := p.say(ctx, false); err != nil && ctx.Err() == nil {
			p.Fault(err)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = p.say(last, true) // else others see that it is lost
			return
		case <-ticker.C:
		}
	}
}

// say writes what the replica is, and forgets those that ended long ago.
func (p *Presence) say(ctx context.Context, stopped bool) error {
	now, err := p.Clock.CatalogTime(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.started.IsZero() {
		p.started = now.UTC()
	}
	r := p.Describe()
	r.Name, r.Started, r.Seen, r.Collection, r.Stopped = p.Name, p.started, now.UTC(), p.collection, stopped
	p.mu.Unlock()
	if err := p.Replicas.Put(ctx, p.Name, r); err != nil || stopped {
		return err
	}
	others, err := p.Replicas.List(ctx, "", storage.MaxPage)
	if err != nil {
		return err
	}
	for _, other := range others {
		if now.Sub(other.Document.Seen) > forgetAfter {
			if err := p.Replicas.Delete(ctx, other.Name); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
				return err
			}
		}
	}
	return nil
}
