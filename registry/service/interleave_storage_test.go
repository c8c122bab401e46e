package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
)

// collectGarbage takes away what nothing needs, which changes nothing that anybody can rely on.
func collectGarbage() operation {
	return operation{"collect", "",
		func(t testing.TB, ctx context.Context, a *arena, _ *service.Service) answer {
			did, err := a.collector(t).Collect(ctx)
			if err == nil && len(did.SkippedRepositories) > 0 {
				err = registry.Errorf(registry.CodeInternal, "left alone: %v", did.SkippedRepositories)
			}
			return said(err, "ok")
		},
		func(*model, string) string { return "ok" }}
}

// upload pushes a blob and a manifest of it, as a client does that was not told before
// whether they are there.
func upload(repository, content string) operation {
	return operation{"upload " + content + " to " + repository, "",
		func(t testing.TB, ctx context.Context, a *arena, _ *service.Service) answer {
			blob, manifest := contentOf(t, content)
			into := a.open(repository)
			err := into.Push(ctx, blobOf(blob), bytes.NewReader(blob))
			if err == nil {
				err = into.Push(ctx, manifestOf(manifest), bytes.NewReader(manifest))
			}
			got := said(err, "ok")
			got.pushed = map[registry.Digest]bool{digest.FromBytes(blob): false, digest.FromBytes(manifest): true}
			got.at.in = repository
			return got
		},
		func(_ *model, _ string) string { return "ok" }}
}

// uploadOrHear is an upload that may be told to send everything again.
func uploadOrHear(repository, content string) operation {
	o := upload(repository, content)
	o.model = func(_ *model, got string) string {
		if got == string(registry.CodeUnavailable) {
			return got
		}
		return "ok"
	}
	return o
}

// contentOf makes a blob and a manifest of it.
func contentOf(t testing.TB, content string) (blob, manifest []byte) {
	t.Helper()
	blob = []byte(content)
	layer := descriptor{"application/octet-stream", digest.FromBytes(blob), len(blob)}
	manifest, err := json.Marshal(image{SchemaVersion: 2, MediaType: typeManifest, Config: &layer, Layers: []descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	return blob, manifest
}

// backup copies the catalog as it is at one instant, and then the content that it names. It
// begins again if some was collected meanwhile, as package backup does.
func backup() operation {
	return operation{"back up", "",
		func(_ testing.TB, ctx context.Context, a *arena, _ *service.Service) answer {
			s := strandOf(ctx)
			for range 3 {
				var restored *arena
				s.step("copy the catalog", func() {
					s.readEverything()
					restored = a.copy()
				})
				if restored.fetch(ctx, a) {
					return answer{said: "ok", restored: restored}
				}
			}
			return answer{said: "content is missing"}
		},
		func(*model, string) string { return "ok" }}
}

// fetch takes the content that the names of an arena need from another one.
func (a *arena) fetch(ctx context.Context, other *arena) bool {
	needed := make(map[registry.Digest]bool)
	repositories, _ := a.db.Repositories(ctx)
	for _, repository := range repositories {
		held, _ := a.db.Records(ctx, repository)
		for _, h := range held {
			needed[h.Digest] = true
		}
	}
	for d := range inOrder(keysOf(needed)) {
		blob, size, err := composed.Blobs(tracedBlobs{other.blobs}, a.db, 0).Open(ctx, d)
		if err != nil {
			return false
		}
		if err := errors.Join(a.blobs.Put(ctx, d, size, blob), blob.Close()); err != nil {
			return false
		}
	}
	for d := range a.blobs.Digests(ctx) {
		if !needed[d] {
			_ = a.blobs.Delete(ctx, d) // of a map: it cannot fail
		}
	}
	return true
}

// pause lets everybody stand still for longer than a removal lasts.
func pause() operation {
	return operation{"pause", "",
		func(_ testing.TB, ctx context.Context, a *arena, _ *service.Service) answer {
			s := strandOf(ctx)
			s.step("pause", func() {
				s.write(clockSpace, "")
				a.now = a.now.Add(2 * storage.RemovalTime)
			})
			return answer{said: "ok"}
		},
		func(*model, string) string { return "ok" }}
}

// deletion is a request that the storage answered, and may carry out again until a time.
type deletion struct {
	d     registry.Digest
	until time.Time
}

// repeatDeletions carries out again what the storage was asked to delete, as a load balancer does
// that got no answer.
func repeatDeletions() operation {
	return operation{"repeat deletions", "",
		func(_ testing.TB, ctx context.Context, a *arena, _ *service.Service) answer {
			s := strandOf(ctx)
			for range 2 {
				s.step("repeat deletions", func() {
					s.read(clockSpace, "")
					s.read("deleted", "")
					for _, one := range a.deleted {
						if !a.now.After(one.until) {
							s.write("bytes", string(one.d))
							_ = a.blobs.Delete(ctx, one.d) // of a map: it cannot fail
						}
					}
				})
			}
			return answer{said: "ok"}
		},
		func(*model, string) string { return "ok" }}
}

// collectOrHear is a collection that may be told that its permit has run out.
func collectOrHear() operation {
	o := collectGarbage()
	o.model = func(_ *model, got string) string {
		if got == string(registry.CodeUnavailable) {
			return got
		}
		return "ok"
	}
	return o
}

// open opens a repository to push to.
func (a *arena) open(name string) oci.Repository {
	blobs, refs := a.bytes(), tracedRefs{a.db}
	safe := gc.SafeStore{Garbage: tracedGarbage{a.db, a}, Remover: tracedRemover{a.blobs, a}}
	return oci.Local(safe.Blobs(blobs), safe.Refs(refs, blobs), name)
}

const typeManifest = ocispec.MediaTypeImageManifest

func blobOf(content []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(content), Size: int64(len(content))}
}

func manifestOf(content []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: typeManifest, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

// keysOf lists digests.
func keysOf(all map[registry.Digest]bool) func(yield func(registry.Digest, error) bool) {
	return func(yield func(registry.Digest, error) bool) {
		for d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}
