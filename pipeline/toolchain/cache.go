package toolchain

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Cache is driver with a memory: a job whose [Key] is in the store is not done
// again, its files are copied from there. What runs for its timings alone must not
// go through a cache. A step that cannot be stored is an error, since the next
// build would do it again without anybody knowing why.
func Cache(driver Driver, store *Store) Driver { return cached{driver, store} }

type cached struct {
	Driver
	store *Store
}

func (c cached) Do(ctx context.Context, job Job, outDir string) (Outcome, error) {
	tool, err := c.Identity(ctx)
	if err != nil {
		return Outcome{}, err
	}
	key, err := Key(job, tool)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := c.store.Load(ctx, key, outDir)
	if err == nil || !registry.HasCode(err, registry.CodeNotFound) {
		return outcome, err
	}
	outcome, err = c.Driver.Do(ctx, job, outDir)
	if err != nil {
		return Outcome{}, err
	}
	outcome.Key = key
	return outcome, c.store.Save(ctx, job.Verb, outcome)
}
