package operations

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// fresh is how long a count of content is used.
const fresh = 5 * time.Minute

// largest is how many repositories a count names.
const largest = 10

// Count counts what is stored, unless that was done a short while ago, and reads the events that came since the last
// count. A count of a large registry takes seconds: call it beside requests. A second call while one runs does nothing.
// Errors: those of the ports, which [Gatherer.Gather] then returns too.
func (g *Gatherer) Count(ctx context.Context) error {
	now, err := g.Clock.CatalogTime(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	if g.running {
		g.mu.Unlock()
		return nil
	}
	g.running = true
	due, after := g.content == nil || now.Sub(g.content.At) >= fresh, g.counted
	g.mu.Unlock()

	var content *storage.ContentUse
	if due {
		content, err = g.count(ctx, now)
	}
	if err == nil {
		err = g.readSigners(ctx, after)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running, g.failure = false, err; content != nil {
		g.content = content
	}
	return err
}

// count reads the records of all repositories.
func (g *Gatherer) count(ctx context.Context, now time.Time) (*storage.ContentUse, error) {
	repositories, err := g.Store.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	use := &storage.ContentUse{At: now.UTC(), Storage: g.Storage, Repositories: len(repositories), Largest: []storage.RepositoryUse{}}
	seen := make(map[registry.Digest]bool)
	for _, repository := range repositories {
		records, err := g.Store.Records(ctx, repository)
		if err != nil {
			return nil, err
		}
		here := storage.RepositoryUse{Repository: repository}
		for _, r := range records {
			here.Bytes += r.Size
			if !r.Marked.IsZero() {
				use.Marked++
			}
			if seen[r.Digest] {
				continue
			}
			seen[r.Digest] = true
			if use.Bytes += r.Size; r.Manifest {
				use.Manifests++
			} else {
				use.Blobs++
			}
		}
		use.Largest = append(use.Largest, here)
	}
	slices.SortStableFunc(use.Largest, func(a, b storage.RepositoryUse) int { return cmp.Compare(b.Bytes, a.Bytes) })
	use.Largest = slices.Clone(use.Largest[:min(len(use.Largest), largest)])
	return use, nil
}

// readSigners adds the events after a number to what is known of signers.
func (g *Gatherer) readSigners(ctx context.Context, after int64) error {
	for e, err := range g.History(ctx, history.HistoryQuery{After: after}) {
		if err != nil {
			return err
		}
		g.mu.Lock()
		if g.counted = e.Seq; e.Signer != "" {
			g.signed[e.Signer] = signed{g.signed[e.Signer].statements + 1, e.Time.UTC()}
		}
		g.mu.Unlock()
	}
	return nil
}
