package promotion

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// previewTime is how long a preview is returned again. Evidence of an environment that builds write
// to can come and go without an event.
const previewTime = time.Minute

// previewed identifies the question of a preview.
type previewed struct{ from, to, model, ref string }

// preview is an answer, as of the last events of the model and of the environments themselves.
type preview struct {
	promotion api.Promotion
	err       error // the refusal, or nil
	events    [4]registry.Digest
	basis     history.DecisionBasis // names the node types, if they were asked
	until     time.Time
}

// Previews remembers what promotions would be decided, while the catalog has no newer event. It is safe for concurrent use.
type Previews struct {
	backend *backend.Backend
	latest  storage.Latest
	known   *lru.Cache[previewed, *preview]
}

// NewPreviews returns an empty cache of about the given number of bytes. latest must use the catalog of s.
func NewPreviews(s *backend.Backend, latest storage.Latest, bytes int) *Previews {
	return &Previews{backend: s, latest: latest, known: lru.New[previewed, *preview](bytes)}
}

// Bytes returns the approximate size of the cache in bytes.
func (c *Previews) Bytes() int { return c.known.Bytes() }

// Preview decides about a promotion without reading all bytes of the release.
func (c *Previews) Preview(ctx context.Context, req api.PromoteRequest) (api.Promotion, error) {
	from, to, err := c.backend.Environments.Edge(req.From, req.To)
	if err != nil {
		return api.Promotion{}, err
	}
	req.From, req.To = from.Name, to.Name
	// Evidence in another registry changes without an event, and so does what a tag names that can be pushed.
	tag := req.Ref != "" && registry.Digest(req.Ref).Validate() != nil
	if from.External() || to.External() || tag {
		p, _, err := decidePreview(ctx, c.backend, req)
		return p, err
	}
	q := previewed{from.Name, to.Name, req.Model, req.Ref}
	events, err := c.lastEvents(ctx, q)
	if err != nil {
		return api.Promotion{}, err
	}
	now := c.backend.Now()
	if known, ok := c.known.Get(q); ok && known.events == events && now.Before(known.until) &&
		lookup.SameNodeTypes(ctx, c.backend, known.basis) == nil {
		return known.promotion, known.err
	}
	p, basis, err := decidePreview(ctx, c.backend, req)
	if err != nil && !registry.OnlyCode(err, registry.CodePolicy) {
		return p, err // a failure beside a refusal may be over the next time
	}
	until := now.Add(previewTime)
	if changes := p.Decision.Until; !changes.IsZero() && changes.Before(until) {
		until = changes
	}
	c.known.Put(q, &preview{p, err, events, basis, until}, previewBytes(p))
	return p, err
}

// lastEvents are the events from which a preview is another one. They are read before it is decided,
// so that a concurrent change is read again the next time.
func (c *Previews) lastEvents(ctx context.Context, q previewed) (events [4]registry.Digest, err error) {
	places := [...][2]string{{q.from, q.model}, {q.to, q.model}, {q.from, ""}, {q.to, ""}}
	for i, place := range places {
		if events[i], err = c.latest.LastEvent(ctx, place[0], place[1]); err != nil {
			return events, err
		}
	}
	return events, nil
}

func decidePreview(ctx context.Context, s *backend.Backend, req api.PromoteRequest) (api.Promotion, history.DecisionBasis, error) {
	req.DryRun, req.BreakGlass, req.Downgrade, req.Replaces = true, false, false, nil
	planned, err := plan(ctx, s, req)
	if err != nil {
		return api.Promotion{}, history.DecisionBasis{}, err
	}
	planned.rehashed = true // a promotion reads all bytes, and this is none
	err = decide(ctx, s, &planned)
	return planned.promotion(), planned.basis, err
}

// previewBytes is the approximate memory size of a preview.
func previewBytes(p api.Promotion) int {
	n := 1 << 10
	for _, r := range p.Decision.Requirements {
		n += 160 + len(r.Detail) + 80*len(r.Evidence)
	}
	return n
}
