// Package operations gathers what administrators of a service look after: what is stored, what waits, which replicas
// serve the catalog, and what each key may sign and has signed.
package operations

import (
	"context"
	"iter"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Config is where a [Gatherer] reads. All fields are required.
type Config struct {
	Version    string
	Storage    string // names where content is
	Store      registry.GCStore
	Intents    registry.Intents
	Uploads    func(ctx context.Context, idle time.Duration) iter.Seq2[registry.UploadState, error] // of [registry.UploadStates]
	Damages    registry.Damages
	Scrubs     registry.ScrubStates
	Replicas   registry.Replicas
	Webhooks   registry.Webhooks
	Deliveries registry.Deliveries
	History    func(ctx context.Context, q registry.HistoryQuery) iter.Seq2[registry.Event, error]
	Clock      registry.CatalogClock
	// Trust returns the environments with their trust list, and how events name the keys of it, by the names of the entries.
	Trust func(ctx context.Context) (registry.Environments, map[string]string, error)
}

// Gatherer reads what administrators look after. What takes long it counts beside, and remembers. Make one with [New].
type Gatherer struct {
	Config
	mu      sync.Mutex
	content *registry.ContentUse
	failure error // of the last count
	running bool
	signed  map[string]signed // by signer
	counted int64             // number of the last event in signed
}

// signed is what the history has of a signer.
type signed struct {
	statements int
	last       time.Time
}

// New returns a Gatherer.
func New(c Config) *Gatherer { return &Gatherer{Config: c, signed: make(map[string]signed)} }

// Gather returns everything. Content is of the last count, which [Gatherer.Count] makes.
func (g *Gatherer) Gather(ctx context.Context) (registry.Operations, error) {
	now, err := g.Clock.CatalogTime(ctx)
	if err != nil {
		return registry.Operations{}, err
	}
	o := registry.Operations{At: now.UTC(), Version: g.Version, Damaged: []registry.Damage{}, Moves: []registry.PendingMove{}, Webhooks: []registry.WebhookUse{}}
	for _, step := range []func(context.Context, *registry.Operations) error{g.stored, g.waiting, g.replicas, g.keys, g.webhooks} {
		if err := step(ctx, &o); err != nil {
			return registry.Operations{}, err
		}
	}
	return o, nil
}

// stored says what is stored, and what is wrong with it.
func (g *Gatherer) stored(ctx context.Context, o *registry.Operations) error {
	g.mu.Lock()
	content, err := g.content, g.failure
	g.mu.Unlock()
	if o.Content = content; err != nil {
		return err
	}
	for after := ""; ; {
		page, err := g.Damages.List(ctx, after, registry.MaxPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			if after = d.Name; len(o.Damaged) < registry.MaxOperationsList {
				o.Damaged = append(o.Damaged, d.Document)
			}
			o.DamagedCount++
		}
		if len(page) < registry.MaxPage {
			break
		}
	}
	states, err := g.Scrubs.List(ctx, "", 1)
	if err == nil && len(states) > 0 {
		o.Scrub = states[0].Document
	}
	return err
}

// waiting lists what began and has not ended.
func (g *Gatherer) waiting(ctx context.Context, o *registry.Operations) error {
	pending, err := g.Intents.Pending(ctx)
	if err != nil {
		return err
	}
	for _, i := range pending[:min(len(pending), registry.MaxOperationsList)] {
		o.Moves = append(o.Moves, registry.PendingMove(i))
	}
	for _, err := range g.Uploads(ctx, 0) {
		if err != nil {
			return err
		}
		o.Uploads++
	}
	return nil
}

// replicas lists the replicas, and finds the last collection of all.
func (g *Gatherer) replicas(ctx context.Context, o *registry.Operations) error {
	found, err := g.Replicas.List(ctx, "", registry.MaxOperationsList)
	if err != nil {
		return err
	}
	o.Replicas = make([]registry.Replica, 0, len(found))
	for _, r := range found {
		o.Replicas = append(o.Replicas, r.Document)
		if run := r.Document.Collection; run != nil && (o.Collection == nil || run.Ended.After(o.Collection.Ended)) {
			o.Collection = run
		}
	}
	return nil
}

// keys lists the trust list, with what the history has of each key.
func (g *Gatherer) keys(ctx context.Context, o *registry.Operations) error {
	environments, signers, err := g.Trust(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	o.Keys = make([]registry.KeyUse, 0, len(environments.Trust))
	for _, e := range environments.Trust {
		k := registry.NewKeyUse(environments, e, signers[e.String()])
		if k.Signer != "" {
			k.Statements, k.Last = g.signed[k.Signer].statements, g.signed[k.Signer].last
		}
		o.Keys = append(o.Keys, k)
	}
	return nil
}

// webhooks lists the webhooks with their deliveries.
func (g *Gatherer) webhooks(ctx context.Context, o *registry.Operations) error {
	newest, err := g.newest(ctx)
	if err != nil {
		return err
	}
	hooks, err := g.Webhooks.List(ctx, "", registry.MaxOperationsList)
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		var state *registry.Delivery
		found, err := g.Deliveries.Get(ctx, hook.Name)
		switch {
		case err == nil:
			state = &found
		case !registry.HasCode(err, registry.CodeNotFound):
			return err
		}
		o.Webhooks = append(o.Webhooks, registry.NewWebhookUse(hook.Name, hook.Document, state, newest))
	}
	return nil
}

// newest is the number of the newest event; 0 before the first.
func (g *Gatherer) newest(ctx context.Context) (int64, error) {
	for e, err := range g.History(ctx, registry.HistoryQuery{Descending: true, Limit: 1}) {
		return e.Seq, err
	}
	return 0, nil
}
