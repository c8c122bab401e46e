// Package catalog has what all databases of a catalog have in common: the rules of
// [storage.Catalog] and of the ports beside it, such as how an event is chained, when a head
// may move and what an idempotency key gets, and what the rows mean. A database only reads and
// writes rows.
package catalog

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Tx is what [Decide] reads in the transaction of the change. The results must stay valid until
// the commit.
type Tx interface {
	// Last returns the newest event, or the zero Event.
	Last(ctx context.Context) (history.Event, error)
	// ModelState returns the state of a model in an environment.
	ModelState(ctx context.Context, environment, model string) (history.ModelState, error)
	// Since lists the events of a model after a sequence number, in all environments.
	Since(ctx context.Context, model string, after int64) ([]history.Event, error)
	// Tag returns the digest that a tag names, or "".
	Tag(ctx context.Context, repository, tag string) (registry.Digest, error)
	// Recorded reports whether a manifest is recorded, and unmarks it.
	Recorded(ctx context.Context, m storage.ManifestPlace) (bool, error)
}

// Outcome is what a change writes atomically.
type Outcome struct {
	Event     history.Event // chained
	Head      *history.Head // nil: unchanged
	Adds      []storage.RepositoryManifest
	Keeps     []evidence.AdverseEvidence
	Tags      []storage.TagMove      // in this order
	Agreed    *history.Configuration // parts to replace; nil: unchanged
	EndIntent bool                   // the one for the event's release
	Restricts bool                   // count one more restriction
}

// Decide returns what a change writes, or why it is refused. Errors: those of
// [storage.Catalog.Apply].
func Decide(ctx context.Context, tx Tx, c storage.Change) (Outcome, error) {
	last, err := tx.Last(ctx)
	if err != nil {
		return Outcome{}, err
	}
	event, err := c.Event.Chain(last)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Event: event, Adds: c.Adds, Keeps: c.Keeps, Tags: c.Tags, EndIntent: c.EndIntent, Restricts: event.Restricts()}
	if c.DecisionBasis != nil || c.Move != nil || c.Configure != nil {
		if err := o.rest(ctx, tx, c); err != nil {
			return Outcome{}, err
		}
	}
	if err := checkNeeds(ctx, tx, c.Needs); err != nil {
		return Outcome{}, err
	}
	return o, checkTags(ctx, tx, c.Tags)
}

// checkNeeds checks that the needed manifests are recorded.
func checkNeeds(ctx context.Context, tx Tx, needs []storage.ManifestPlace) error {
	for _, m := range needs {
		recorded, err := tx.Recorded(ctx, m)
		if err != nil {
			return err
		}
		if !recorded {
			return registry.WithHint(
				registry.Errorf(
					registry.CodeConflict,
					"manifest %s in %s was deleted meanwhile, because the operation took longer than the grace period of the "+
						"garbage collection",
					m.Digest,
					m.Repository,
				),
				"try again")
		}
	}
	return nil
}

// rest checks the basis of the change and sets its effect on the head and on the agreed
// configuration.
func (o *Outcome) rest(ctx context.Context, tx Tx, c storage.Change) error {
	now, err := tx.ModelState(ctx, o.Event.Environment, o.Event.Model)
	if err != nil {
		return err
	}
	if c.DecisionBasis != nil {
		since, err := tx.Since(ctx, o.Event.Model, c.DecisionBasis.Seq)
		if err != nil {
			return err
		}
		if err := c.DecisionBasis.Moved(now, since); err != nil {
			return err
		}
		if err := c.DecisionBasis.Holds(o.Event.Time); err != nil {
			return err
		}
	}
	if c.Configure != nil {
		if err := c.Configure.Check(now.Agreed); err != nil {
			return err
		}
		o.Agreed = &c.Configure.To
	}
	if c.Move == nil {
		return nil
	}
	o.Head, err = moved(o.Event, c, now.Head)
	return err
}

// moved returns the head after the change.
func moved(event history.Event, c storage.Change, before history.Head) (*history.Head, error) {
	switch {
	case event.Release == "":
		return nil, registry.Errorf(registry.CodeInvalid,
			"head of %s in %s: the event has no release", event.Model, event.Environment)
	case c.DecisionBasis == nil:
		return nil, registry.Errorf(registry.CodeInvalid,
			"head of %s in %s: the change has no basis", event.Model, event.Environment)
	}
	head := history.Head{
		Environment: event.Environment, Model: event.Model, Release: event.Release, Version: event.Version,
		Since: event.Time, Hold: c.Move.Hold,
	}
	if before.Release == event.Release { // the head is unchanged since an earlier event
		head.Since = before.Since
	}
	return &head, nil
}

type tagKey struct{ repository, tag string }

// checkTags checks the moves in order, each as if the earlier ones had been applied.
func checkTags(ctx context.Context, tx Tx, moves []storage.TagMove) error {
	made := make(map[tagKey]registry.Digest)
	for _, m := range moves {
		key := tagKey{m.Repository, m.Tag}
		have, ok := made[key]
		if m.Immutable && !ok {
			var err error
			if have, err = tx.Tag(ctx, m.Repository, m.Tag); err != nil {
				return err
			}
		}
		if m.Immutable && have != "" && have != m.Digest {
			return TagTaken(m, have)
		}
		made[key] = m.Digest
	}
	return nil
}

// TagTaken returns the error for an immutable tag that names another digest.
func TagTaken(m storage.TagMove, have registry.Digest) error {
	return registry.Lastingf(registry.CodeConflict, "tag %s in %s: names %s and cannot move to %s: choose a new version",
		m.Tag, m.Repository, have, m.Digest)
}
