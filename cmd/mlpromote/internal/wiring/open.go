package wiring

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/predicates"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/signer"
)

// resolveMemory is how many bytes of releases and evidence are remembered for resolves.
const resolveMemory = 64 << 20

// Open opens the registry: that of a service, or the data directory.
func (l Location) Open(ctx context.Context) (*Instance, error) {
	if l.Registry != "" {
		return l.openRemote(ctx)
	}
	return l.OpenLocal(ctx)
}

// With opens the registry, runs verb on it and closes it.
func (l Location) With(ctx context.Context, verb func(*Instance) error) error {
	i, err := l.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(verb(i), i.Close())
}

// OpenLocal opens the data directory, which exists and which no service has to itself.
func (l Location) OpenLocal(ctx context.Context) (*Instance, error) {
	if _, err := os.Stat(l.Data); errors.Is(err, fs.ErrNotExist) {
		return nil, NoData(l.Data)
	}
	unlock, err := l.Dir().LockShared(ctx, l.Waiting)
	if err != nil {
		return nil, err
	}
	i, err := l.OpenDirectory(ctx)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	closeDB := i.Close
	i.Close = func() error { return errors.Join(closeDB(), unlock()) }
	return i, nil
}

// NoData is the error of a verb that needs a data directory where none is.
func NoData(dir string) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeNotFound, "no data directory %s here", dir),
		"mlpromote build makes it; --data DIR or MLPROMOTE_DATA names another")
}

// OpenDirectory opens the data directory without a lock, for a verb.
func (l Location) OpenDirectory(ctx context.Context) (*Instance, error) {
	own, err := l.Files().Read()
	if err != nil {
		return nil, err
	}
	here, err := l.OpenCatalog(ctx)
	if err != nil {
		return nil, err
	}
	i, err := l.InstanceBy(here, own, l.Keyring())
	if err != nil {
		return nil, errors.Join(err, here.DB.Close())
	}
	write, resolve := l.agreementOf(here, own)
	i.Interface, i.Agreed = config.Registry(i.Interface, write, resolve), resolve
	k := here.Keeper(l.Keyring().SignNote, func() *Instance { return i })
	k.May, i.Checkpoints = resolve, k
	return i, nil
}

// InstanceBy is the registry of a data directory by a configuration. keys sign.
func (l Location) InstanceBy(here *Local, own config.Snapshot, keys *signer.Keyring) (*Instance, error) {
	trust, err := signer.NewTrust(own.Environments.Trust, own.Key)
	if err != nil {
		return nil, err
	}
	trust.WithRoots(own.Environments.Roots)
	content := &remote.Repositories{Agent: l.agent(), Environments: own.Environments, Local: func(repository string) (oci.Repository, error) {
		return oci.Local(here.Spared, here.Refs, repository), nil
	}}
	store := oci.New(content.Open, oci.Options{Progress: l.Hashing()})
	compare := parts.Compare(store)
	sign := keys.Sign
	if l.Telemetry != nil { // which a service alone has
		sign = signServed(keys)
	}
	svc, err := service.New(backend.Backend{
		Environments: own.Environments, Catalog: here.Catalog, Records: here.records, Listing: here.DB, Intents: here.DB,
		Content: store, Mirror: store, Compare: compare, Inspect: parts.Inspect(store),
		Verify: trust.Verify, Sign: sign, Manifests: here.DB, NodeTypes: l.localNodeTypes(here.DB), RestrictionBundles: here.DB.RestrictionBundles(),
		TrustBundles: here.DB.TrustBundles(), ReadKey: own.Key, KeptCheckpoint: here.keptCheckpoint,
		Tool: l.Tool(), Now: clock.Now, MaxReferrers: l.MaxReferrers,
		CheckStatement: predicates.CheckNew,
	})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Registry: connect.Registry{
			Interface: service.Remember(svc, here.latest, resolveMemory), Envs: own.Environments, Store: store, Content: content,
			Verify: trust.Verify, VerifyNote: trust.VerifyNote, RoleKeys: trust.RoleKeys, KeyIDs: trust.KeyIDs,
			Name: "the data directory " + l.Data, Nodes: here.NodeReports(svc, 0), NodeTypes: l.localNodeTypes(here.DB),
		},
		Keys: keys, Local: here, Service: svc, Compare: compare, HeadFaults: svc.HeadFaults, Close: here.DB.Close,
	}, nil
}

// Create makes the data directory and, where there is no key at all, one that plays
// every role: enough for a laptop. A service would not trust it, so beside one none is
// made. Nothing in the directory is ever to be committed.
func (l Location) Create() error {
	if err := os.MkdirAll(l.Data, 0o700); err != nil {
		return err
	}
	if err := IgnoreAll(l.Data); err != nil {
		return err
	}
	if l.Keys != "" || l.Registry != "" {
		return nil
	}
	if has, err := l.KeyFolder().Any(); err != nil || has {
		return err
	}
	_, _, err := l.KeyFolder().New("")
	if registry.HasCode(err, registry.CodeConflict) {
		return nil // another process was first
	}
	if err == nil {
		l.Note("made a signing key: %s", filepath.Join(l.KeyDir(), signer.LocalKey+".key"))
	}
	return err
}

// agreementOf says by what a verb may change and resolve. Where the catalog is in a file,
// all who use it read the same environments.yaml, so that a change of it is agreed on with
// the first verb that writes. In PostgreSQL services with files of their own may use it.
func (l Location) agreementOf(here *Local, own config.Snapshot) (write, resolve func(context.Context) error) {
	if l.Database == "" {
		write = func(ctx context.Context) error { return config.Settle(ctx, here.DB, own, l.Files().Read, clock.Now()) }
		agreed := func(ctx context.Context) (history.Configuration, error) {
			return here.DB.Agreed(ctx, history.Configuration{})
		}
		return write, func(ctx context.Context) error { return config.CheckPresent(ctx, own, agreed) }
	}
	environments := history.Configuration{Environments: own.Configuration.Environments}
	check := func(first history.Configuration) func(context.Context) error {
		return func(ctx context.Context) error {
			agreed := func(ctx context.Context) (history.Configuration, error) { return here.DB.Agreed(ctx, first) }
			return config.Agreement{Own: environments, Agreed: agreed}.Check(ctx)
		}
	}
	return check(environments), check(history.Configuration{})
}
