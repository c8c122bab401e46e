package wiring

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/defaults"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Local is the data directory itself.
type Local struct {
	DB      Database
	Refs    storage.RepositoryRecords // of db, safe beside collectors: catalog and latest are of db, too
	Catalog storage.Catalog
	latest  storage.Latest
	records history.HistoryIndex
	Blobs   *blobStorage
	Spared  storage.Blobs    // blobs, safe beside collectors: to store in
	Uploads storage.Uploads  // they end in blobs, as safe
	Replica *datadir.Replica // nil if no other process can serve the catalog
	Reserve *blob.Reserve    // nil if the content is in a bucket, or not served
}

// OpenCatalog opens catalog and content of the data directory.
func (l Location) OpenCatalog(ctx context.Context) (*Local, error) {
	db, err := l.OpenDatabase(ctx)
	if err != nil {
		return nil, err
	}
	blobs, err := l.openStorage(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	here := &Local{DB: db, Refs: db, Catalog: db, latest: db, records: db, Blobs: blobs}
	if l.Telemetry != nil {
		here.Refs, here.Catalog, here.latest, here.records = l.Telemetry.Refs(db), l.Telemetry.Catalog(db), l.Telemetry.Latest(db), l.Telemetry.Records(db)
	}
	safe := gc.SafeStore{Garbage: db, Remover: blobs.remover}
	here.Spared, here.Uploads, here.Refs = safe.Blobs(blobs.Blobs), safe.Uploads(blobs.Uploads), safe.Refs(here.Refs, blobs.Blobs)
	return here, nil
}

// NodeReports has what nodes report of releases that the inspector has, for as long as a report counts; 0 takes none.
func (here *Local) NodeReports(releases api.Inspector, life time.Duration) storage.NodeReporter {
	return service.NodeReports{Table: here.DB.NodeReports(), Inspector: releases, Clock: here.DB, Life: life}
}

// Reindex fills the tables that are derived from manifests again. It returns how many manifests it read.
func (here *Local) Reindex(ctx context.Context) (int, error) {
	if err := here.DB.ResetDerived(ctx); err != nil {
		return 0, err
	}
	return oci.Reindex(ctx, here.Blobs, here.DB)
}

// localNodeTypes are those that were put, and those that the operator wrote as files:
// DATA/node-types/NAME.json.
func (l Location) localNodeTypes(db Database) storage.NodeTypes {
	return defaults.Over(db.NodeTypes(), defaults.Folder[artifact.Node]{Dir: filepath.Join(l.Data, "node-types"), Read: node.ParseFile})
}

// Runtimes are those of the database over those that ship with the program.
func (here *Local) Runtimes() storage.Runtimes {
	return defaults.Over(here.DB.Runtimes(), defaults.Runtimes())
}
