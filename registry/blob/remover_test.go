package blob_test

import (
	"context"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func TestRemover(t *testing.T) {
	t.Parallel()
	registrytest.TestRemover(t, func(t *testing.T) registrytest.RemovableBlobs { return blob.NewDir(t.TempDir()) })
}

// Await returns once no permit is open, also where another process has the directory open.
func TestAwait(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mine, other := blob.NewDir(path), blob.NewDir(path)
	if err := mine.Await(t.Context()); err != nil {
		t.Errorf("in a folder without blobs: %v", err)
	}
	permit, err := other.Permit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := mine.Await(ctx); registry.CodeOf(err) != registry.CodeUnavailable || len(registry.Hints(err)) == 0 {
		t.Errorf("beside an open permit: %v, want CodeUnavailable with a hint", err)
	}
	awaited := make(chan error, 1)
	go func() { awaited <- mine.Await(t.Context()) }()
	if err := permit.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-awaited; err != nil {
		t.Errorf("after the permit was closed: %v", err)
	}
}
