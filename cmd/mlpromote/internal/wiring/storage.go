package wiring

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/storage"
)

// blobStorage is where bytes are: in the data directory, or in a bucket that replicas
// share. They change only while the catalog owns them.
type blobStorage struct {
	storage.Blobs               // composed by the recipes of the catalog
	stored        storage.Blobs // without what is composed
	remover       storage.Remover
	Uploads       datadir.Uploads
	Redirect      time.Duration        // how long a client may pull from the bucket itself; 0: not at all
	owner         storage.ContentOwner // nil where nothing may be changed
	Verdict       datadir.Verdict
	replicas      storage.ReplicaPlace // where replicas leave marks
}

// ownerCheck is how often who writes asks whether the content is still its catalog's.
const ownerCheck = 10 * time.Second

// ContentPlace is where content is, whoever it belongs to.
type ContentPlace struct {
	Blobs    storage.RepairableBlobs
	remover  storage.Remover                 // of blobs
	outlast  func(ctx context.Context) error // of remover: see datadir.Ownership
	marks    storage.ContentMarks
	replicas storage.ReplicaPlace
	uploads  func(storage.UploadStates) datadir.Uploads
	redirect time.Duration
	Storage  string // as catalogs record it
	Name     string // as people call it
	Recorded bool   // the data directory says that its content is there
}

// OpenContent opens what --storage names, else the data directory.
func (l Location) OpenContent(ctx context.Context) (ContentPlace, error) {
	if l.Storage == "" {
		if _, err := l.Dir().RefuseOtherStorage(""); err != nil {
			return ContentPlace{}, err
		}
		dir := blob.NewDir(l.Data)
		return ContentPlace{
			Blobs: dir, remover: dir, outlast: dir.Await, marks: l.Dir(), replicas: l.Dir(), Storage: storage.DirectoryStorage, Name: l.Data, Recorded: true,
			uploads: func(states storage.UploadStates) datadir.Uploads { return blob.NewUploads(dir, states) },
		}, nil
	}
	config, err := s3.ParseURL(l.Storage)
	if err != nil {
		return ContentPlace{}, err
	}
	recorded, err := l.recordsStorage(config.String())
	if err != nil {
		return ContentPlace{}, err
	}
	bucket, err := s3.Open(ctx, config)
	if err != nil {
		return ContentPlace{}, err
	}
	return ContentPlace{
		Blobs: bucket, remover: bucket, outlast: bucket.Outlast, marks: bucket, replicas: bucket,
		Storage: config.String(), Name: config.String(), Recorded: recorded, redirect: config.Redirect,
		uploads: func(states storage.UploadStates) datadir.Uploads { return s3.NewUploads(bucket, states) },
	}, nil
}

// recordsStorage reports whether the data directory says that its content is in a bucket.
// Content that is taken over may have been moved to another one.
func (l Location) recordsStorage(name string) (bool, error) {
	if have, err := l.Dir().Storage(); err != nil || l.TakeOver && have != "" {
		return have == name, err
	}
	return l.Dir().RefuseOtherStorage(name)
}

// Ownership is what a catalog and a place have to do with each other.
func (l Location) Ownership(p ContentPlace, catalog storage.CatalogIdentities, names datadir.Names) *datadir.Ownership {
	return &datadir.Ownership{
		Catalog: catalog, Marks: p.marks, Storage: p.Storage, Name: p.Name, Now: clock.Now,
		Beside: l.Storage == "" && l.Database == "",
		Survey: datadir.Survey(names, p.Blobs, p.Recorded),
		Outlast: func(ctx context.Context) error {
			l.Note("waiting until nothing is deleted any more that the owner before had begun to delete")
			return p.outlast(ctx)
		},
	}
}

// openStorage opens the content of a catalog. Content of another one is refused; content
// that the catalog does not own can be read.
func (l Location) openStorage(ctx context.Context, catalog Database) (*blobStorage, error) {
	p, err := l.OpenContent(ctx)
	if err != nil {
		return nil, err
	}
	owner := l.Ownership(p, catalog, catalog)
	verdict, err := owner.Open(ctx)
	if err != nil {
		return nil, err
	}
	if verdict.Access == datadir.Refused {
		return nil, verdict.Err()
	}
	if !p.Recorded {
		if err := l.Dir().SetStorage(p.Storage); err != nil {
			return nil, err
		}
	}
	guard := datadir.NewGuard(owner, ownerCheck)
	stored := guard.Blobs(p.Blobs)
	return &blobStorage{
		Blobs: composed.Blobs(stored, catalog, composed.Least), stored: stored, remover: guard.Remover(p.remover), Uploads: guard.Uploads(p.uploads(catalog)),
		Redirect: p.redirect, owner: owner, Verdict: verdict, replicas: p.replicas,
	}, nil
}
