package gc

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Collect deletes content that is unreferenced and was not used since it was marked. It waits
// for other collectors of the catalog, and does not touch content of other catalogs. It skips
// damaged repositories and the sources of their models, because their references are unknown.
// Errors: as the ports; CodeTrust if the history was changed, because the history decides
// which content must stay.
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
	err = s.each(ctx, func(repository string) error { return s.update(ctx, repository, &did) })
	did.SkippedRepositories = s.skipped
	if err != nil {
		return did, err
	}
	if err := c.collectBytes(ctx, turn, s.now, &did); err != nil {
		return did, err
	}
	if err := c.removeSurplus(ctx, turn, s.now, &did); err != nil {
		return did, err
	}
	return did, c.remnants(ctx, &did)
}

// remnants deletes what is neither content nor its records.
func (c *Collector) remnants(ctx context.Context, did *Collected) (err error) {
	if c.Sweep != nil {
		if did.Leftovers, err = c.Sweep(ctx); err != nil {
			return err
		}
	}
	if c.Expire != nil {
		did.Expired, err = c.Expire(ctx)
	}
	return err
}

// update decides about a repository and applies the decision. It first checks without a lock
// whether there is anything to change, because usually there is not.
func (s *survey) update(ctx context.Context, repository string, did *Collected) error {
	links := make(map[registry.Digest]artifact.Links)
	held, err := s.Store.Records(ctx, repository)
	if err != nil {
		return err
	}
	outcomes, err := s.evaluate(ctx, repository, held, links)
	if err != nil {
		return err
	}
	var settled storage.GCChanges
	if !s.Retention.Changes(outcomes, s.now).Empty() {
		err = s.Store.UpdateRecords(ctx, repository, func(held []storage.GCRecord) (storage.GCChanges, error) {
			if outcomes, err = s.evaluate(ctx, repository, held, links); err != nil {
				return storage.GCChanges{}, err
			}
			settled = s.Retention.Changes(outcomes, s.now)
			return settled, nil
		})
		if err != nil {
			return err
		}
	}
	s.want(repository, outcomes, links)
	did.Marked += len(settled.Mark)
	did.Unmarked += len(settled.Unmark)
	for _, key := range settled.Delete {
		if key.Manifest {
			did.Manifests++
		} else {
			did.Members++
		}
	}
	return nil
}
