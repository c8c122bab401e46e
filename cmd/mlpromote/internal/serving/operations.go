package serving

import (
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/pages"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// newOperations answers what administrators look after.
func (sv *Service) newOperations() *pages.Operations {
	return pages.NewOperations(pages.OperationsConfig{
		DB: sv.Here.DB, Holder: sv.holder, Alone: sv.at.Database == "", Bucket: sv.at.Storage != "", Version: sv.at.Version,
		InForce: func() *wiring.Instance { return sv.keeper.InForce().Instance },
		Describe: func() storage.Replica {
			return storage.Replica{Configuration: sv.keeper.Status().State, CollectEvery: sv.config.collect, ScrubEvery: sv.config.scrubInterval}
		},
		Logger: sv.logger,
	})
}

// runOf is a collection as others see it.
func runOf(did gc.Collected, took time.Duration, err error) storage.CollectionRun {
	run := storage.CollectionRun{
		Ended: clock.Now().UTC(), TookNs: took.Nanoseconds(), Marked: did.Marked, Unmarked: did.Unmarked, Manifests: did.Manifests,
		Members: did.Members, Blobs: did.Blobs, Bytes: did.Bytes, Failed: err != nil,
	}
	for _, left := range did.SkippedRepositories {
		run.Skipped = append(run.Skipped, registry.PlainText(left.Repository+": "+left.Reason))
	}
	return run
}
