package scrub

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Config has the dependencies and options of a Scrubber. The first seven are required.
type Config struct {
	Blobs     storage.Blobs // as they are stored
	Inventory storage.Inventory
	Store     storage.GCStore
	Catalog   storage.Catalog
	Damages   storage.Damages
	States    storage.ScrubStates
	Clock     storage.CatalogClock

	// Rate bounds the bytes read per second; 0 means no bound.
	Rate int64
	// Found is called once for each damage, and Repaired when it is repaired. Progress is
	// called after each digest with its number of bytes. They may be nil.
	Found    func(ctx context.Context, d storage.Damage)
	Repaired func(ctx context.Context, d storage.Damage)
	Progress func(bytes int64)
}

// Scrubber reads content. It changes no content, and garbage collection does not count its
// reads as use.
type Scrubber struct {
	Config
	pace *rate.Limiter // nil: no bound
}

// readBytes is how much is read at a time.
const readBytes = 256 << 10

// New checks a configuration. Errors: CodeInvalid.
func New(c Config) (*Scrubber, error) {
	if slices.Contains([]any{c.Blobs, c.Inventory, c.Store, c.Catalog, c.Damages, c.States, c.Clock}, nil) {
		return nil, registry.Errorf(registry.CodeInvalid,
			"scrub: blobs, inventory, store, catalog, damages, states and clock are all required")
	}
	s := &Scrubber{Config: c}
	if c.Rate > 0 {
		s.pace = rate.NewLimiter(rate.Limit(c.Rate), readBytes)
	}
	return s, nil
}

// stateName is the key of the only document in the table of states.
const stateName = "content"

// State returns the progress of the scrubber. The zero state means that no pass has begun.
func (s *Scrubber) State(ctx context.Context) (storage.ScrubState, error) {
	state, err := s.States.Get(ctx, stateName)
	if registry.HasCode(err, registry.CodeNotFound) {
		return storage.ScrubState{}, nil
	}
	return state, err
}

// Result is the outcome of a pass.
type Result struct {
	Checked  int64 `json:"checked"` // digests
	Bytes    int64 `json:"bytes"`
	Damaged  int   `json:"damaged"`  // of the checked digests
	Repaired int   `json:"repaired"` // of the checked digests: they were damaged before, and are intact now
}

// Pass continues the pass in progress, or begins one, and reads all remaining content. It
// records its position, also if it fails, so that the next call continues there. Errors: as the
// ports. Content that cannot be read while the storage answers is damage, not an error.
func (s *Scrubber) Pass(ctx context.Context) (Result, error) {
	state, err := s.State(ctx)
	if err != nil {
		return Result{}, err
	}
	if state.Started.IsZero() {
		if state.Started, err = s.Clock.CatalogTime(ctx); err != nil {
			return Result{}, err
		}
	}
	now, saved := state, time.Now()
	did, err := s.read(ctx, state.Position, time.Time{}, func(d registry.Digest, did Result) error {
		now.Position, now.Checked, now.Read = d, state.Checked+did.Checked, state.Read+did.Bytes
		if time.Since(saved) < saveInterval {
			return nil
		}
		saved = time.Now()
		return s.States.Put(ctx, stateName, now)
	})
	if err != nil {
		return did, errors.Join(err, s.States.Put(context.WithoutCancel(ctx), stateName, now))
	}
	if err := s.forgetGone(ctx); err != nil {
		return did, err
	}
	finished, err := s.Clock.CatalogTime(ctx)
	if err != nil {
		return did, err
	}
	return did, s.States.Put(ctx, stateName, storage.ScrubState{Finished: finished})
}

// saveInterval is how often a pass records its position.
const saveInterval = 5 * time.Second

// Restart makes the next Pass start from the beginning.
func (s *Scrubber) Restart(ctx context.Context) error {
	state, err := s.State(ctx)
	if err != nil || state.Started.IsZero() {
		return err
	}
	return s.States.Put(ctx, stateName, storage.ScrubState{Finished: state.Finished})
}

// Read reads content that repositories received since a time, or all content for the zero time.
// It records only damage.
func (s *Scrubber) Read(ctx context.Context, since time.Time) (Result, error) {
	return s.read(ctx, "", since, func(registry.Digest, Result) error { return nil })
}

// pageSize is how many digests are listed at a time.
const pageSize = 200

// read reads content whose digest is greater than after. It calls done after each digest; an
// error of done ends it.
func (s *Scrubber) read(
	ctx context.Context, after registry.Digest, since time.Time, done func(registry.Digest, Result) error,
) (Result, error) {
	var did Result
	for {
		page, err := s.Inventory.HeldDigests(ctx, after, since, pageSize)
		if err != nil || len(page) == 0 {
			return did, err
		}
		for _, d := range page {
			if err := s.checkOne(ctx, d, &did); err != nil {
				return did, err
			}
			if err := done(d, did); err != nil {
				return did, err
			}
		}
		after = page[len(page)-1]
	}
}

// Recheck reads the known damaged content again.
func (s *Scrubber) Recheck(ctx context.Context) (Result, error) {
	var did Result
	for after := ""; ; {
		page, err := s.Damages.List(ctx, after, pageSize)
		if err != nil || len(page) == 0 {
			return did, err
		}
		for _, known := range page {
			if err := s.checkOne(ctx, known.Document.Digest, &did); err != nil {
				return did, err
			}
		}
		after = page[len(page)-1].Name
	}
}

// forgetGone deletes damage of content that no repository holds any more.
func (s *Scrubber) forgetGone(ctx context.Context) error {
	for after := ""; ; {
		page, err := s.Damages.List(ctx, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, known := range page {
			holders, err := s.Inventory.Holders(ctx, known.Document.Digest)
			if err != nil {
				return err
			}
			if len(holders) == 0 {
				if err := s.forget(ctx, known.Document.Digest); err != nil {
					return err
				}
			}
		}
		after = page[len(page)-1].Name
	}
}
