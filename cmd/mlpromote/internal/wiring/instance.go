package wiring

import (
	"context"
	"fmt"
	"iter"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// Instance is the registry that the verbs work with, near or far. The verbs see no
// difference; only what works on the data directory itself asks for local.
type Instance struct {
	connect.Registry
	Keys          *signer.Keyring
	Tokens        Tokens                 // of a service
	Configuration farConfiguration       // of a service
	Events        events                 // of a service; nil for the local directory
	Local         *Local                 // nil for a service
	Service       *service.Service       // nil for a service elsewhere
	Compare       policy.CompareReleases // nil for a service elsewhere
	// Pages is the address of a service, where its pages are. Empty for the local directory.
	Pages string
	// Agreed refuses to work by files that are not those which the catalog agreed on; a
	// service says that itself.
	Agreed func(context.Context) error
	// Checkpoints makes signed checkpoints of the history, and has those that were made.
	Checkpoints checkpoints
	// HeadFaults lists heads that the history does not explain; nil for a service.
	HeadFaults func(context.Context) ([]history.HistoryFault, error)
	Close      func() error
}

// farConfiguration is how the configuration of a service is seen and adopted from elsewhere.
type farConfiguration interface {
	Configuration(ctx context.Context) (history.ConfigurationStatus, error)
	AdoptConfiguration(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error)
}

// Tokens is what the verbs do with tokens.
type Tokens interface {
	CreateToken(ctx context.Context, t storage.Token) error
	ListTokens(ctx context.Context) ([]storage.Token, error)
	RevokeToken(ctx context.Context, id string, at time.Time) error
}

// checkpoints is what the verbs do with checkpoints: of a catalog here, or of a service.
type checkpoints interface {
	Checkpoint(ctx context.Context) ([]byte, error)
	Proof(ctx context.Context, seq int64) ([]byte, error)
	KeptAfter(ctx context.Context, size int64, limit int) ([]trust.KeptCheckpoint, error)
}

// events follows the history of a service from behind an event on.
type events = func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]

// ManifestDeleter gives what takes manifests out of a repository, as far as they may go.
func (i *Instance) ManifestDeleter(ctx context.Context, repository string) (func(context.Context, registry.Digest) error, error) {
	if i.Local != nil {
		guard := i.Guard()
		return func(ctx context.Context, d registry.Digest) error {
			err := guard.DeleteManifest(ctx, repository, d)
			if registry.CodeOf(err) == registry.CodePolicy {
				return remote.KeptError{Err: err}
			}
			return err
		}, nil
	}
	opened, err := i.Content.Open(ctx, repository)
	if err != nil {
		return nil, err
	}
	deleter, ok := opened.(interface {
		oci.Repository
		Delete(ctx context.Context, desc ocispec.Descriptor) error
	})
	if !ok {
		return nil, registry.Lastingf(registry.CodeUnavailable, "nothing can be deleted from %s", repository)
	}
	return func(ctx context.Context, d registry.Digest) error {
		desc, err := deleter.Resolve(ctx, string(d))
		if err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		return deleter.Delete(ctx, desc)
	}, nil
}

// Guard deletes manifests from the data directory that nothing relies on.
func (i *Instance) Guard() service.Guard {
	return service.Guard{
		Deleter: i.Local.DB, Environments: i.Envs, Manifests: i.Local.Refs,
		Catalog: i.Local.Catalog, Records: i.Local.DB, Content: i.Store, Verify: i.Verify,
	}
}

// KeptError is the error of a manifest that may not be deleted.
type KeptError = remote.KeptError
