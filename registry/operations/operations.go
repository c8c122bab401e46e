// Package operations gathers what administrators of a service look after: what is stored, what waits, which replicas
// serve the catalog, and what each key may sign and has signed.
package operations

import (
	"context"
	"iter"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Config is where a [Gatherer] reads. All fields are required.
type Config struct {
	Version    string
	Storage    string // names where content is
	Store      storage.GCStore
	Intents    storage.Intents
	Uploads    func(ctx context.Context, idle time.Duration) iter.Seq2[storage.UploadState, error] // of [storage.UploadStates]
	Damages    storage.Damages
	Scrubs     storage.ScrubStates
	Replicas   storage.Replicas
	Webhooks   storage.Webhooks
	Deliveries storage.Deliveries
	History    func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
	Clock      storage.CatalogClock
	// Trust returns the environments with their trust list, and how events name the keys of it, by the names of the entries.
	Trust func(ctx context.Context) (policy.Environments, map[string]string, error)
}

// Gatherer reads what administrators look after. What takes long it counts beside, and remembers. Make one with [New].
type Gatherer struct {
	Config
	mu      sync.Mutex
	content *storage.ContentUse
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
func (g *Gatherer) Gather(ctx context.Context) (api.Operations, error) {
	now, err := g.Clock.CatalogTime(ctx)
	if err != nil {
		return api.Operations{}, err
	}
	o := api.Operations{At: now.UTC(), Version: g.Version, Damaged: []storage.Damage{}, Moves: []storage.PendingMove{}, Webhooks: []api.WebhookUse{}}
	for _, step := range []func(context.Context, *api.Operations) error{g.stored, g.waiting, g.replicas, g.keys, g.webhooks} {
		if err := step(ctx, &o); err != nil {
			return api.Operations{}, err
		}
	}
	return o, nil
}

// stored says what is stored, and what is wrong with it.
func (g *Gatherer) stored(ctx context.Context, o *api.Operations) error {
	g.mu.Lock()
	content, err := g.content, g.failure
	g.mu.Unlock()
	if o.Content = content; err != nil {
		return err
	}
	for after := ""; ; {
		page, err := g.Damages.List(ctx, after, storage.MaxPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			if after = d.Name; len(o.Damaged) < api.MaxOperationsList {
				o.Damaged = append(o.Damaged, d.Document)
			}
			o.DamagedCount++
		}
		if len(page) < storage.MaxPage {
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
func (g *Gatherer) waiting(ctx context.Context, o *api.Operations) error {
	pending, err := g.Intents.Pending(ctx)
	if err != nil {
		return err
	}
	for _, i := range pending[:min(len(pending), api.MaxOperationsList)] {
		o.Moves = append(o.Moves, storage.PendingMove(i))
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
func (g *Gatherer) replicas(ctx context.Context, o *api.Operations) error {
	found, err := g.Replicas.List(ctx, "", api.MaxOperationsList)
	if err != nil {
		return err
	}
	o.Replicas = make([]storage.Replica, 0, len(found))
	for _, r := range found {
		o.Replicas = append(o.Replicas, r.Document)
		if run := r.Document.Collection; run != nil && (o.Collection == nil || run.Ended.After(o.Collection.Ended)) {
			o.Collection = run
		}
	}
	return nil
}

// keys lists the trust list, with what the history has of each key.
func (g *Gatherer) keys(ctx context.Context, o *api.Operations) error {
	environments, signers, err := g.Trust(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	o.Keys = make([]api.KeyUse, 0, len(environments.Trust))
	for _, e := range environments.Trust {
		k := api.NewKeyUse(environments, e, signers[e.String()])
		if k.Signer != "" {
			k.Statements, k.Last = g.signed[k.Signer].statements, g.signed[k.Signer].last
		}
		o.Keys = append(o.Keys, k)
	}
	return nil
}

// webhooks lists the webhooks with their deliveries.
func (g *Gatherer) webhooks(ctx context.Context, o *api.Operations) error {
	newest, err := g.newest(ctx)
	if err != nil {
		return err
	}
	hooks, err := g.Webhooks.List(ctx, "", api.MaxOperationsList)
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		var state *storage.Delivery
		found, err := g.Deliveries.Get(ctx, hook.Name)
		switch {
		case err == nil:
			state = &found
		case !registry.HasCode(err, registry.CodeNotFound):
			return err
		}
		o.Webhooks = append(o.Webhooks, api.NewWebhookUse(hook.Name, hook.Document, state, newest))
	}
	return nil
}

// newest is the number of the newest event; 0 before the first.
func (g *Gatherer) newest(ctx context.Context) (int64, error) {
	for e, err := range g.History(ctx, history.HistoryQuery{Descending: true, Limit: 1}) {
		return e.Seq, err
	}
	return 0, nil
}
