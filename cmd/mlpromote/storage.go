package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/s3"
)

// blobStorage is where bytes are: in the data directory, or in a bucket that replicas share.
type blobStorage struct {
	registry.Blobs
	uploads  uploads
	redirect time.Duration // how long a client may pull from the bucket itself; 0: not at all
}

// uploads is uploads whose leftovers can be collected.
type uploads interface {
	registry.Uploads
	Sweep(ctx context.Context, now time.Time) (int, error)
}

// storageFile names the bucket that has the content of a data directory.
const storageFile = "storage"

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

// openStorage opens what --storage names, else the data directory. The catalog is nil
// where it is not there yet, or not asked.
func (a *app) openStorage(ctx context.Context, catalog database) (*blobStorage, error) {
	if a.storage == "" {
		if _, err := a.claimsStorage(""); err != nil {
			return nil, err
		}
		dir := blob.NewDir(a.data)
		return &blobStorage{Blobs: dir, uploads: blob.NewUploads(dir, catalog)}, nil
	}
	config, err := s3.ParseURL(a.storage)
	if err != nil {
		return nil, err
	}
	bucket, err := s3.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	first, err := a.claimsStorage(config.String())
	if err == nil && first {
		if err = a.refuseStrange(ctx, catalog, bucket, config.String()); err == nil {
			err = os.WriteFile(filepath.Join(a.data, storageFile), []byte(config.String()+"\n"), 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	return &blobStorage{Blobs: bucket, uploads: s3.NewUploads(bucket, catalog), redirect: config.Redirect}, nil
}

// refuseStrange refuses a bucket with content where the catalog has none: that is another
// catalog's, and would be collected.
func (a *app) refuseStrange(ctx context.Context, catalog database, bucket registry.Blobs, name string) error {
	if catalog == nil {
		return nil
	}
	known, err := catalog.Repositories(ctx)
	if err != nil || len(known) > 0 {
		return err
	}
	if found, err := holdsAnything(ctx, bucket); err != nil || !found {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s has content, and the catalog of %s knows nothing of it and would collect it", name, a.data),
		"the catalog that this content belongs to, from a backup if it was lost; else another bucket or prefix")
}

// claimsStorage makes sure that the content of a data directory stays where it is: what
// its catalog names is looked for in one place. It reports whether the directory has none yet.
func (a *app) claimsStorage(name string) (first bool, err error) {
	path := filepath.Join(a.data, storageFile)
	text, err := os.ReadFile(path)
	have := strings.TrimSpace(string(text))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case have == name:
		return false, nil
	case have != "":
		return false, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "the content of %s is in %s", a.data, have),
			"MLPROMOTE_STORAGE=%s, with its endpoint and region, or --storage", have)
	}
	if _, err := os.Stat(filepath.Join(a.data, "blobs")); !errors.Is(err, fs.ErrNotExist) {
		return false, errors.Join(err, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s has content of its own, in blobs/, which %s knows nothing of", a.data, name),
			"another --data for the bucket, or no --storage"))
	}
	return true, nil
}
