package pages

import (
	"context"
	"log/slog"
	"os"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/operations"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// presenceInterval is how often a replica says that it is there.
	presenceInterval = time.Minute
	// countPatience is how long a question about operations waits for a count of what is stored.
	countPatience = 2 * time.Second
)

// OperationsConfig is what [NewOperations] needs of a service. All fields are required.
type OperationsConfig struct {
	DB      wiring.Database
	Holder  string // a name that no other replica has
	Alone   bool   // this is the only replica that there can be
	Bucket  bool   // content is in a bucket
	Version string
	// InForce returns what the service works by now.
	InForce func() *wiring.Instance
	// Describe returns what the replica says of itself, without Host and Version.
	Describe func() storage.Replica
	Logger   *slog.Logger
}

// Operations answers what administrators look after, and says of this replica that it is there.
type Operations struct {
	gatherer *operations.Gatherer
	presence *operations.Presence
	logger   *slog.Logger
}

// NewOperations returns the operations of a replica.
func NewOperations(c OperationsConfig) *Operations {
	stored := "directory"
	if c.Bucket {
		stored = "bucket"
	}
	name := c.Holder
	if c.Alone {
		name = "alone" // it is the same after a restart
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := &Operations{logger: c.Logger}
	o.gatherer = operations.New(operations.Config{
		Version: c.Version, Storage: stored, Store: c.DB, Intents: c.DB, Uploads: c.DB.StaleUploads, Damages: c.DB.Damages(), Scrubs: c.DB.ScrubStates(),
		Replicas: c.DB.Replicas(), Webhooks: c.DB.Webhooks(), Deliveries: c.DB.Deliveries(), History: c.DB.History, Clock: c.DB,
		Trust: func(ctx context.Context) (policy.Environments, map[string]string, error) {
			i := c.InForce()
			ids, err := i.KeyIDs(ctx)
			return i.Envs, ids, err
		},
	})
	o.presence = &operations.Presence{
		Name: name, Replicas: c.DB.Replicas(), Clock: c.DB, Every: presenceInterval,
		Describe: func() storage.Replica {
			r := c.Describe()
			r.Host, r.Version = registry.PlainText(host), c.Version
			return r
		},
		Fault: func(err error) { c.Logger.Warn("this replica could not announce itself", "error", err) },
	}
	return o
}

// Run says that the replica is there until ctx ends.
func (o *Operations) Run(ctx context.Context) { o.presence.Run(ctx) }

// Collected remembers a garbage collection that ended.
func (o *Operations) Collected(run storage.CollectionRun) { o.presence.Collected(run) }

// Answer returns what administrators look after. A count of a large registry goes on after the question was given up,
// and the next question has it.
func (o *Operations) Answer(ctx context.Context) (api.Operations, error) {
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		if err := o.gatherer.Count(context.WithoutCancel(ctx)); err != nil {
			o.logger.ErrorContext(ctx, "the stored content could not be counted", "error", err)
		}
	}()
	patience := time.NewTimer(countPatience)
	defer patience.Stop()
	select {
	case <-counted:
	case <-patience.C:
	case <-ctx.Done():
		return api.Operations{}, ctx.Err()
	}
	return o.gatherer.Gather(ctx)
}
