package oci

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// evidenceBytes bounds the documents of evidence that all callers of a Store together hold in
// memory. Verifying a document takes five times its size.
const evidenceBytes = maxDocument

// Store stores releases, parts and evidence in repositories. It is safe for concurrent use if
// its repositories are.
type Store struct {
	open    func(ctx context.Context, repository string) (Repository, error)
	options Options
	reading *semaphore.Weighted // bytes of evidence
}

var (
	_ storage.Content   = (*Store)(nil)
	_ storage.PartStore = (*Store)(nil)
)

// Options configure a Store. The zero Options are valid.
type Options struct {
	// Created is recorded in the parts and indexes that the store creates, as
	// org.opencontainers.image.created: the SOURCE_DATE_EPOCH of a build. Zero: nothing is
	// recorded, and equal input always has equal digests.
	Created time.Time
	// Progress is called by Rehash, at least once per MiB, with the number of hashed bytes and
	// of all bytes. Each call of Rehash calls it from one goroutine at a time. It may be nil.
	Progress func(done, total int64)
}

// New returns a Store over the repositories that open returns. open gets the names
// ENVIRONMENT/MODEL and, for sources, ENVIRONMENT/MODEL/sources; a Mounter gets the same names.
// The Store does not close repositories, and open may return the same value each time.
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
