package oci

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"mlpromote.dev/mlpromote/registry"
)

// Store keeps releases, parts and evidence in repositories. It is safe for concurrent
// use as far as its repositories are.
type Store struct {
	open    func(ctx context.Context, repository string) (Repository, error)
	options Options
	reading *semaphore.Weighted // bytes of evidence
}

var (
	_ registry.Content   = (*Store)(nil)
	_ registry.PartStore = (*Store)(nil)
)

// Options change what a Store writes and whom it tells. The zero Options are good.
type Options struct {
	// Created is recorded in the parts and indexes that the store makes, as
	// org.opencontainers.image.created: the SOURCE_DATE_EPOCH of a build. Zero: nothing
	// is recorded, and equal input has equal digests at any time.
	Created time.Time
	// Progress is told by Rehash, at least once a MiB, how many bytes of how many were
	// hashed. It is called by one goroutine at a time for each call of Rehash. Nil: nobody is told.
	Progress func(done, total int64)
}

// New makes a Store over the repositories that open gives. The names given to open are
// ENVIRONMENT/MODEL and, for sources, ENVIRONMENT/MODEL/sources; a Mounter is offered
// the same names. What open gives is not closed and may be the same value each time.
func New(open func(ctx context.Context, repository string) (Repository, error), options Options) *Store {
	return &Store{open: open, options: options, reading: semaphore.NewWeighted(evidenceBytes)}
}

// repository opens a repository by name.
func (s *Store) repository(ctx context.Context, name string) (repository, error) {
	if s == nil || s.open == nil {
		return repository{}, registry.Errorf(registry.CodeUnavailable, "open repository %s: this process has no store", name)
	}
	opened, err := s.open(ctx, name)
	if err != nil {
		return repository{}, registry.Errorf(registry.CodeOf(err), "open repository %s: %w", name, err)
	}
	return repository{Repository: opened, name: name}, nil
}
