package service

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// MinGrace is the shortest grace beside others who are at work: whoever was told that
// content is there must be able to finish within it what he began.
const MinGrace = time.Minute

// CollectorConfig is what a Collector is made of. Every field but Current, Alone and Sweep
// is required.
type CollectorConfig struct {
	Environments registry.Environments
	// Current gives the environments by which a collection that begins now decides what
	// must stay; its error stops the collection. Nil: Environments, always.
	Current   func(ctx context.Context) (registry.Environments, error)
	Stock     registry.Stock
	Catalog   registry.Catalog
	Intents   registry.Intents
	Blobs     registry.Blobs
	Remover   registry.Remover // of Blobs
	Garbage   Garbage
	Clock     registry.CatalogClock
	Owner     registry.ContentOwner   // says that what is collected is the catalog's
	Lock      registry.CollectionLock // keeps other collectors of the catalog out
	Retention registry.Retention      // its Grace is also how long what is condemned waits
	// Alone says that nobody else writes names or content of this catalog until Collect
	// returns, on any machine. Then what nothing needs goes at once, and a Grace may be as
	// short as it likes.
	Alone bool
	// Sweep removes what broken uploads left behind, and gives their number. Nil: there
	// are none.
	Sweep func(ctx context.Context) (int, error)
}

// Collector takes away what nothing needs: records of manifests, memberships of blobs, and
// bytes that no repository holds. It needs no pause of the service: what it finds is
// condemned first, and goes a grace later if nobody asked for it meanwhile. Several may be
// at work on the same content, and one that is killed has lost nothing.
type Collector struct{ CollectorConfig }

// NewCollector checks the configuration. Errors: CodeInvalid.
func NewCollector(c CollectorConfig) (*Collector, error) {
	if c.Stock == nil || c.Catalog == nil || c.Intents == nil || c.Blobs == nil || c.Remover == nil || c.Garbage == nil || c.Clock == nil || c.Owner == nil || c.Lock == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "collector: stock, catalog, intents, blobs, remover, garbage, clock, owner and lock are all required")
	}
	if c.Retention.Grace < 0 || !c.Alone && c.Retention.Grace < MinGrace {
		return nil, registry.Errorf(registry.CodeInvalid, "collector: a grace of %v is too short: want at least %v, longer than any push takes", c.Retention.Grace, MinGrace)
	}
	if err := c.Retention.Validate(); err != nil {
		return nil, err
	}
	if c.Current == nil {
		c.Current = func(context.Context) (registry.Environments, error) { return c.Environments, nil }
	}
	return &Collector{c}, nil
}

// Collected is what a collection did.
type Collected struct {
	Condemned int           `json:"condemned"` // records that nothing needs, found for the first time
	Rescinded int           `json:"rescinded"` // records that are needed again
	Manifests int           `json:"manifests"` // records of manifests that went
	Members   int           `json:"members"`   // memberships of blobs that went
	Blobs     int           `json:"blobs"`     // whose bytes were deleted
	Bytes     int64         `json:"bytes"`     // of those blobs
	Leftovers int           `json:"leftovers"` // of broken uploads
	Intents   int           `json:"intents"`   // promotions that nobody will finish, and that were forgotten
	LeftAlone []Unaccounted `json:"leftAlone,omitempty"`
}

// Unaccounted is a repository that was left alone, since nobody can tell what it needs.
type Unaccounted struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}

// Collect takes away what nothing needs and what nobody asked for since that was found. It
// waits for other collectors of the catalog, and collects nothing that belongs to another one.
// Damage stops it where it is found: what a damaged repository needs cannot be known, so
// that it is left alone, with the sources of its model. Errors: those of the ports;
// CodeTrust when the history was changed, since it says what must stay.
func (c *Collector) Collect(ctx context.Context) (Collected, error) {
	session, err := c.Lock.LockCollection(ctx)
	if err != nil {
		return Collected{}, err
	}
	defer session.Release()
	epoch, err := c.Owner.OwnsContent(ctx)
	if err != nil {
		return Collected{}, err
	}
	turn := turn{session, epoch}
	s, err := c.survey(ctx)
	if err != nil {
		return Collected{}, err
	}
	var did Collected
	for _, i := range s.abandoned {
		if err := c.Intents.Abandon(ctx, i); err != nil {
			return did, err
		}
		did.Intents++
	}
	err = s.each(ctx, func(repository string) error { return s.settle(ctx, repository, &did) })
	did.LeftAlone = s.leftAlone
	if err != nil {
		return did, err
	}
	if err := c.collectBytes(ctx, turn, s.now, &did); err != nil || c.Sweep == nil {
		return did, err
	}
	did.Leftovers, err = c.Sweep(ctx)
	return did, err
}

// settle decides about a repository and carries it out. Most have nothing to decide, and
// that is found without keeping anybody from writing.
func (s *survey) settle(ctx context.Context, repository string, did *Collected) error {
	links := make(map[registry.Digest]registry.Links)
	held, err := s.Stock.Holdings(ctx, repository)
	if err != nil {
		return err
	}
	fates, err := s.judge(ctx, repository, held, links)
	if err != nil {
		return err
	}
	var settled registry.Settlement
	if !s.Retention.Settlement(fates, s.now).Empty() {
		err = s.Stock.Settle(ctx, repository, func(held []registry.Holding) (registry.Settlement, error) {
			if fates, err = s.judge(ctx, repository, held, links); err != nil {
				return registry.Settlement{}, err
			}
			settled = s.Retention.Settlement(fates, s.now)
			return settled, nil
		})
		if err != nil {
			return err
		}
	}
	s.want(repository, fates, links)
	did.Condemned += len(settled.Condemn)
	did.Rescinded += len(settled.Rescind)
	for _, key := range settled.Remove {
		if key.Manifest {
			did.Manifests++
		} else {
			did.Members++
		}
	}
	return nil
}

// wait is how long what is condemned stays.
func (c *Collector) wait() time.Duration {
	if c.Alone {
		return 0
	}
	return c.Retention.Grace
}
