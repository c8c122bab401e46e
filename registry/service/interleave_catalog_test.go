package service_test

import (
	"context"
	"iter"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// tracedCatalog is catalog, records and intents of which every call is a step of a strand.
type tracedCatalog struct{ *mem.DB }

// The spaces of a catalog. The names of what is in a repository are in spaces of their own.
const (
	historySpace  = "history"  // by environment and kind
	recordedSpace = "recorded" // by bundle
	headSpace     = "heads"    // by environment
	intentSpace   = "intents"  // by environment
	clockSpace    = "clock"
)

func (c tracedCatalog) Head(ctx context.Context, environment, model string) (h history.Head, err error) {
	s := strandOf(ctx)
	s.step("Head "+environment, func() {
		s.read(headSpace, environment)
		h, err = c.DB.Head(ctx, environment, model)
	})
	return h, err
}

func (c tracedCatalog) Heads(ctx context.Context, environment, model string) (hs []history.Head, err error) {
	s := strandOf(ctx)
	s.step("Heads", func() {
		s.read(headSpace, environment)
		hs, err = c.DB.Heads(ctx, environment, model)
	})
	return hs, err
}

func (c tracedCatalog) ModelState(ctx context.Context, environment, model string) (at history.ModelState, err error) {
	s := strandOf(ctx)
	s.step("ModelState "+environment, func() {
		s.read(headSpace, environment)
		s.read(historySpace, "")
		at, err = c.DB.ModelState(ctx, environment, model)
	})
	return at, err
}

func (c tracedCatalog) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	s := strandOf(ctx)
	return inOneStep(s, "History", func() {
		if q.Environment == "" || q.Kind == "" {
			s.read(historySpace, "")
		} else {
			s.read(historySpace, q.Environment+" "+string(q.Kind))
		}
	}, c.DB.History(ctx, q))
}

// inOneStep reads a sequence to its end in one step, as all of them are defined: what comes
// later is not in it.
func inOneStep[T any](s *strand, name string, note func(), seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		type result struct {
			value T
			err   error
		}
		var all []result
		s.step(name, func() {
			note()
			for v, err := range seq {
				all = append(all, result{v, err})
			}
		})
		for _, r := range all {
			if !yield(r.value, r.err) {
				return
			}
		}
	}
}

func (c tracedCatalog) Apply(ctx context.Context, change storage.Change) (e history.Event, err error) {
	s := strandOf(ctx)
	s.step("Apply "+string(change.Event.Kind)+" "+change.Event.Environment, func() {
		s.read(headSpace, change.Event.Environment)
		s.read(historySpace, "")
		for _, t := range change.Tags {
			s.read("tags "+t.Repository, t.Tag)
		}
		for _, m := range change.Adds {
			putRecord(s, c.DB, m.Repository, storage.GCRecordKey{Digest: m.Manifest.Digest, Manifest: true})
		}
		for _, m := range change.Needs {
			touchRecord(s, c.DB, m.Repository, storage.GCRecordKey{Digest: m.Digest, Manifest: true})
		}
		if e, err = c.DB.Apply(ctx, change); err == nil {
			noteChange(s, change)
		}
	})
	return e, err
}

// noteChange notes what a change wrote.
func noteChange(s *strand, c storage.Change) {
	s.write(historySpace, c.Event.Environment+" "+string(c.Event.Kind))
	for _, d := range c.Event.Evidence {
		s.write(recordedSpace, string(d))
	}
	for _, m := range c.Adds {
		s.write("referrers "+m.Repository, string(m.Manifest.Derived.Subject))
	}
	for _, t := range c.Tags {
		s.write("tags "+t.Repository, t.Tag)
	}
	if c.Move != nil {
		s.write(headSpace, c.Event.Environment)
	}
	if c.EndIntent {
		s.write(intentSpace, c.Event.Environment)
	}
}

func (c tracedCatalog) Recorded(ctx context.Context, model string, bundles []registry.Digest) (found map[registry.Digest]history.Record, err error) {
	s := strandOf(ctx)
	s.step("Recorded", func() {
		for _, d := range bundles {
			s.read(recordedSpace, string(d))
		}
		found, err = c.DB.Recorded(ctx, model, bundles)
	})
	return found, err
}

func (c tracedCatalog) Begin(ctx context.Context, i history.Intent) (err error) {
	s := strandOf(ctx)
	s.step("Begin "+i.Environment, func() {
		s.write(intentSpace, i.Environment)
		err = c.DB.Begin(ctx, i)
	})
	return err
}

func (c tracedCatalog) Pending(ctx context.Context) (all []history.Intent, err error) {
	s := strandOf(ctx)
	s.step("Pending", func() {
		s.read(intentSpace, "")
		all, err = c.DB.Pending(ctx)
	})
	return all, err
}

func (c tracedCatalog) End(ctx context.Context, environment, model string, release registry.Digest) (err error) {
	return c.forget(ctx, "End", environment, func() error { return c.DB.End(ctx, environment, model, release) })
}

func (c tracedCatalog) Abandon(ctx context.Context, i history.Intent) (err error) {
	return c.forget(ctx, "Abandon", i.Environment, func() error { return c.DB.Abandon(ctx, i) })
}

// forget may end an intent.
func (c tracedCatalog) forget(ctx context.Context, name, environment string, do func() error) (err error) {
	s := strandOf(ctx)
	s.step(name+" "+environment, func() {
		s.read(headSpace, environment)
		before, _ := c.DB.Pending(ctx)
		err = do()
		after, _ := c.DB.Pending(ctx)
		s.readOrWrite(intentSpace, environment, !slices.Equal(before, after))
	})
	return err
}
