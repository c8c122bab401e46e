package service_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	containerregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ownAgent is the User-Agent of the service.
const ownAgent = "mlpromote-of-the-test"

// onServer is a world whose prod is on a registry of others, over HTTP. That keeps lists of referrers in tags.
func onServer(t testing.TB, around func(http.Handler) http.Handler, kind ...containerregistry.Option) (w *world, host string) {
	t.Helper()
	server := httptest.NewServer(around(containerregistry.New(append(kind, containerregistry.Logger(log.New(io.Discard, "", 0)))...)))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	w = &world{db: mem.New(), store: mem.NewBlobs()}
	w.config.Environments = registrytest.Chain()
	w.config.Environments.List[1].Registry = host
	content := &remote.Repositories{Agent: ownAgent, Environments: w.config.Environments, Local: func(repository string) (oci.Repository, error) {
		return oci.Local(w.store, w.db, repository), nil
	}}
	store := oci.New(content.Open, oci.Options{})
	w.Parts = store
	w.Keys = registrytest.NewKeys(w.config.Environments.Trust)
	w.config = backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](), Environments: w.config.Environments,
		Catalog: w.db, Records: w.db, Listing: w.db, Intents: w.db, Content: store, Mirror: store, Manifests: w.db,
		Verify: w.Keys.Verify, Sign: w.Keys.Sign, Now: clock(), Tool: evidence.ToolIdentity{Name: "mlpromote", Version: "0.0.0"},
		Inspect: func(context.Context, policy.Located) error { return nil },
	}
	s, err := service.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.service, w.Interface = s, s
	return w, host
}

// pushAbout pushes something about a subject, as any client of a registry does.
func pushAbout(ctx context.Context, repo *orasremote.Repository, subject ocispec.Descriptor, text string) error {
	empty := ocispec.DescriptorEmptyJSON
	if err := repo.Push(ctx, empty, bytes.NewReader(empty.Data)); err != nil {
		return err
	}
	manifest, err := registry.CanonicalJSON(ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "application/spdx+json",
		Config: empty, Layers: []ocispec.Descriptor{empty}, Subject: &subject, Annotations: map[string]string{"text": text}})
	if err != nil {
		return err
	}
	manifest = bytes.Replace(manifest, []byte("{"), []byte(`{"schemaVersion":2,`), 1)
	manifest = bytes.Replace(manifest, []byte(`,"schemaVersion":0`), nil, 1)
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))}
	return repo.Push(ctx, desc, bytes.NewReader(manifest))
}

// client is a repository of prod as a client of its own opens it, and a release there.
func client(t testing.TB, host string, r artifact.Release) (*orasremote.Repository, ocispec.Descriptor) {
	t.Helper()
	repo, err := orasremote.NewRepository(host + "/prod/" + r.Model)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP, repo.SkipReferrersGC = true, true
	desc, err := repo.Resolve(t.Context(), string(r.Digest))
	if err != nil {
		t.Fatal(err)
	}
	return repo, ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
}

// held is a registry in which the lists that other clients write wait until they are let go.
type held struct {
	http.Handler
	waiting chan struct{} // gets one for each list that waits
	release chan struct{} // closed to let them go
}

func (h held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/sha256-") && !strings.HasPrefix(r.UserAgent(), ownAgent) {
		h.waiting <- struct{}{}
		<-h.release
	}
	h.Handler.ServeHTTP(w, r)
}

// Two ordinary clients read the list of referrers, a quarantine is attached and acknowledged, and they write back what they
// read with what they add. The quarantine counts all the same, and is listed again.
func TestClientsThatWriteTheSameList(t *testing.T) {
	t.Parallel()
	const clients = 2
	h := held{waiting: make(chan struct{}, clients), release: make(chan struct{})}
	w, host := onServer(t, func(inner http.Handler) http.Handler {
		h.Handler = inner
		return h
	})
	r := w.Promoted(t, registrytest.Build{Engines: []artifact.Engine{registrytest.MakeEngine("v3", "int8")}})
	var writing sync.WaitGroup
	for n := range clients {
		repo, subject := client(t, host, r)
		writing.Go(func() {
			if err := pushAbout(t.Context(), repo, subject, fmt.Sprint("inventory ", n)); err != nil {
				t.Errorf("client %d: %v", n, err)
			}
		})
	}
	for range clients {
		<-h.waiting
	}
	quarantine := w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	close(h.release)
	writing.Wait()

	w.faults(t, "is not among the referrers")
	w.refused(t)
	claims, _, err := w.Claims(t.Context(), "prod", r)
	must(t, err)
	if found := evidence.Quarantines(r, claims, r.Digest); len(found) != 1 || found[0].Bundle != quarantine {
		t.Errorf("quarantines: %d, want the one that was acknowledged", len(found))
	}
	if n, err := w.service.Relist(t.Context()); n != 1 || err != nil {
		t.Errorf("%d were listed again, error %v, want 1", n, err)
	}
	w.faults(t)
}

// BenchmarkResolveBesideJunk resolves in an environment on another registry, where a stranger pushed 2,000 manifests about the release.
func BenchmarkResolveBesideJunk(b *testing.B) {
	w, host := onServer(b, func(h http.Handler) http.Handler { return h }, containerregistry.WithReferrersSupport(true))
	r := w.Build(b, registrytest.Build{Engines: []artifact.Engine{registrytest.MakeEngine("v3", "int8")}})
	w.Prove(b, r)
	if _, err := w.Promote(b.Context(), api.PromoteRequest{Model: r.Model}); err != nil {
		b.Fatal(err)
	}
	repo, subject := client(b, host, r)
	for i := range 2000 {
		if err := pushAbout(b.Context(), repo, subject, fmt.Sprint("junk ", i)); err != nil {
			b.Fatal(err)
		}
	}
	for name, reader := range map[string]api.Reader{"read": w.service, "remembered": service.Remember(w.service, w.db, 1<<20)} {
		b.Run(name, func(b *testing.B) {
			_, _ = reader.Resolve(b.Context(), prod("")) // so that it can be remembered
			for b.Loop() {
				if _, err := reader.Resolve(b.Context(), prod("")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
