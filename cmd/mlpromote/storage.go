package main

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/s3"
)

// blobStorage is where bytes are: in the data directory, or in a bucket that replicas
// share. They change only while the catalog owns them.
type blobStorage struct {
	registry.Blobs
	remover  registry.Remover
	uploads  datadir.Uploads
	redirect time.Duration         // how long a client may pull from the bucket itself; 0: not at all
	owner    registry.ContentOwner // nil where nothing may be changed
	verdict  registry.ContentVerdict
}

// ownerCheck is how often who writes asks whether the content is still its catalog's.
const ownerCheck = 10 * time.Second

// configureStorage takes the storage from the environment where no flag names one.
func (a *app) configureStorage() error {
	if a.storage != "" && a.registry != "" {
		return registry.Errorf(registry.CodeInvalid, "--storage is for a data directory, and the service at %s has its own: want one of the two", a.registry)
	}
	if a.storage == "" {
		a.storage = a.getenv("MLPROMOTE_STORAGE")
	}
	return nil
}

// dir is the data directory.
func (a *app) dir() datadir.Dir { return datadir.Dir{Path: a.data} }

// contentPlace is where content is, whoever it belongs to.
type contentPlace struct {
	blobs    registry.Blobs
	remover  registry.Remover                // of blobs
	outlast  func(ctx context.Context) error // of remover: see datadir.Ownership
	marks    registry.ContentMarks
	uploads  func(registry.UploadStates) datadir.Uploads
	redirect time.Duration
	storage  string // as catalogs record it
	name     string // as people call it
	recorded bool   // the data directory says that its content is there
}

// openContent opens what --storage names, else the data directory.
func (a *app) openContent(ctx context.Context) (contentPlace, error) {
	if a.storage == "" {
		if _, err := a.dir().RefuseOtherStorage(""); err != nil {
			return contentPlace{}, err
		}
		dir := blob.NewDir(a.data)
		return contentPlace{
			blobs: dir, remover: dir, outlast: dir.Await, marks: a.dir(), storage: registry.DirectoryStorage, name: a.data, recorded: true,
			uploads: func(states registry.UploadStates) datadir.Uploads { return blob.NewUploads(dir, states) },
		}, nil
	}
	config, err := s3.ParseURL(a.storage)
	if err != nil {
		return contentPlace{}, err
	}
	recorded, err := a.recordsStorage(config.String())
	if err != nil {
		return contentPlace{}, err
	}
	bucket, err := s3.Open(ctx, config)
	if err != nil {
		return contentPlace{}, err
	}
	return contentPlace{
		blobs: bucket, remover: bucket, outlast: bucket.Outlast, marks: bucket, storage: config.String(), name: config.String(), recorded: recorded, redirect: config.Redirect,
		uploads: func(states registry.UploadStates) datadir.Uploads { return s3.NewUploads(bucket, states) },
	}, nil
}

// recordsStorage reports whether the data directory says that its content is in a bucket.
// Content that is taken over may have been moved to another one.
func (a *app) recordsStorage(name string) (bool, error) {
	if have, err := a.dir().Storage(); err != nil || a.takeOver && have != "" {
		return have == name, err
	}
	return a.dir().RefuseOtherStorage(name)
}

// ownership is what a catalog and a place have to do with each other.
func (a *app) ownership(p contentPlace, catalog registry.CatalogIdentities, names datadir.Names) *datadir.Ownership {
	return &datadir.Ownership{
		Catalog: catalog, Marks: p.marks, Storage: p.storage, Name: p.name, Now: now,
		Beside: a.storage == "" && a.database == "",
		Survey: datadir.Survey(names, p.blobs, p.recorded),
		Outlast: func(ctx context.Context) error {
			a.ui.Note("waiting until nothing is deleted any more that the owner before had begun to delete")
			return p.outlast(ctx)
		},
	}
}

// openStorage opens the content of a catalog. Content of another one is refused; content
// that the catalog does not own can be read.
func (a *app) openStorage(ctx context.Context, catalog database) (*blobStorage, error) {
	p, err := a.openContent(ctx)
	if err != nil {
		return nil, err
	}
	owner := a.ownership(p, catalog, catalog)
	verdict, err := owner.Open(ctx)
	if err != nil {
		return nil, err
	}
	if verdict.Access == registry.ContentRefused {
		return nil, verdict.Err()
	}
	if !p.recorded {
		if err := a.dir().SetStorage(p.storage); err != nil {
			return nil, err
		}
	}
	guard := datadir.NewGuard(owner, ownerCheck)
	return &blobStorage{
		Blobs: guard.Blobs(p.blobs), remover: guard.Remover(p.remover), uploads: guard.Uploads(p.uploads(catalog)),
		redirect: p.redirect, owner: owner, verdict: verdict,
	}, nil
}
