package oci_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
)

// counting counts how often each digest of a repository is read.
type counting struct {
	oci.Repository
	mu    sync.Mutex
	reads map[registry.Digest]int
}

func (c *counting) Fetch(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, error) {
	c.mu.Lock()
	c.reads[target.Digest]++
	c.mu.Unlock()
	return c.Repository.Fetch(ctx, target)
}

// All evidence is listed, however many referrers there are. A document of many manifests is
// read once.
func TestEvidenceAmongThousandsOfReferrers(t *testing.T) {
	t.Parallel()
	const more = 4200
	w := newWorld(t, options{})
	for i := range more {
		changed(t, w, staging, ocispec.MediaTypeImageManifest, w.evidence[0], func(m *ocispec.Manifest) {
			m.Annotations["n"] = fmt.Sprint(i)
		})
	}
	repository := &counting{Repository: oci.Local(w.blobs, w.refs, staging), reads: make(map[registry.Digest]int)}
	store := oci.New(func(context.Context, string) (oci.Repository, error) { return repository, nil }, oci.Options{})
	bundles := make(map[registry.Digest]bool)
	documents := make(map[registry.Digest]int)
	var last registry.Digest
	for b, err := range store.Evidence(t.Context(), staging, w.release.Digest) {
		if err != nil {
			t.Fatal(err)
		}
		bundles[b.Digest] = true
		if b.Document != last {
			documents[b.Document]++
		}
		last = b.Document
	}
	if len(bundles) != more+1 {
		t.Errorf("%d bundles are listed, want %d", len(bundles), more+1)
	}
	for d, turns := range documents {
		if turns != 1 || repository.reads[d] != 1 {
			t.Errorf("document %s: listed in %d places and read %d times, want 1 and 1", d, turns, repository.reads[d])
		}
	}
}

// Evidence holds its part of the bound only until the next piece is read. An abandoned listing
// holds nothing.
func TestEvidenceGivesBackItsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for range 1000 {
		for _, err := range w.store.Evidence(t.Context(), staging, w.release.Engines[0].Digest) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
}
