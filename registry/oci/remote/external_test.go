package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	containerregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// watched is a registry in memory that counts mounts and uploads of blobs into prod.
type watched struct {
	*httptest.Server
	mounts, uploads atomic.Int64
}

func (w *watched) host() string { return strings.TrimPrefix(w.URL, "http://") }

// byOthers is a registry that keeps to itself what it is told of subjects.
func byOthers(o ...containerregistry.Option) http.Handler {
	return containerregistry.New(append(o, containerregistry.Logger(log.New(io.Discard, "", 0)))...)
}

// strict is a registry in which a blob belongs to the repositories that it was put into.
func strict(t *testing.T) http.Handler {
	t.Helper()
	blobs, db := mem.NewBlobs(), mem.New()
	made, err := distribution.New(distribution.Config{
		Blobs: blobs, Refs: db, Deleter: db, Uploads: mem.NewUploads(blobs),
		Authorize: func(context.Context, distribution.Access) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newWatched(t *testing.T, inner http.Handler) *watched {
	t.Helper()
	w := &watched{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/prod/") && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			if r.URL.Query().Has("mount") {
				w.mounts.Add(1)
			}
			if r.Method == http.MethodPut {
				w.uploads.Add(1)
			}
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// storeOver is a store with staging and prod on the hosts; "" is in memory.
func storeOver(staging, prod string) *oci.Store {
	return storeOverWith(staging, prod, transfer.Options{})
}

func storeOverWith(staging, prod string, o transfer.Options) *oci.Store {
	blobs, refs := mem.NewBlobs(), mem.New()
	base := new(http.Transport) // servers of other tests close the idle connections of http.DefaultTransport when they stop
	c := &Repositories{
		base: base, Local: func(repository string) (oci.Repository, error) { return oci.Local(blobs, refs, repository), nil },
		Transfer: o, Keychain: authn.NewMultiKeychain(), Environments: registrytest.Chain(),
	}
	c.Environments.List[0].Registry, c.Environments.List[1].Registry = staging, prod
	return oci.New(c.Open, oci.Options{})
}

// Within a registry a promotion mounts; between two it sends; both give the same release.
func TestExternalCopy(t *testing.T) {
	t.Parallel()
	const from, to = "staging/" + registrytest.Model, "prod/" + registrytest.Model
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	for name, c := range map[string]struct {
		near, far bool // staging and prod are on registries
		same      bool // and that is one
	}{
		"one registry": {near: true, far: true, same: true}, "two registries": {near: true, far: true}, "out": {far: true}, "in": {near: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWatched(t, strict(t))
			b := newWatched(t, byOthers(containerregistry.WithReferrersSupport(true)))
			if c.same {
				b = a
			}
			staging, prod := "", ""
			if c.near {
				staging = a.host()
			}
			if c.far {
				prod = b.host()
			}
			store := storeOver(staging, prod)
			r, err := store.Release(t.Context(), from, string(registrytest.Build{}.Store(t, store)))
			if err != nil {
				t.Fatal(err)
			}
			bundle := registrytest.Registry{Keys: keys}.Bundle(t, "builder", evidence.PredicateSign, struct{}{}, r.Digest)
			evidence, err := store.PutEvidence(t.Context(), from, evidence.Bundle{Data: bundle}, r.Subjects())
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time finds everything there
				if err := store.Copy(t.Context(), from, to, r, evidence); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Rehash(t.Context(), to, r); err != nil {
				t.Error(err)
			}
			for _, s := range r.Subjects() {
				if found, err := registrytest.Bundles(store.Evidence(t.Context(), to, s.Digest)); err != nil ||
					len(found) != 1 || !bytes.Equal(found[0].Data, bundle) {
					t.Errorf("evidence for %s in prod: %v, error %v", s.Name, found, err)
				}
			}
			if mounts, uploads := b.mounts.Load(), b.uploads.Load(); (mounts > 0) != c.same || (uploads > 0) != (c.far && !c.same) {
				t.Errorf("%d blobs were mounted and %d sent", mounts, uploads)
			}
		})
	}
}

// Evidence that others attach through the referrers API alone is seen, also by a process
// that has written to a registry which acknowledges no subject.
func TestExternalSeesEvidenceOfOthers(t *testing.T) {
	t.Parallel()
	const name = "staging/" + registrytest.Model
	server := newWatched(t, byOthers(containerregistry.WithReferrersSupport(true)))
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	store := storeOver(server.host(), "")
	r, err := store.Release(t.Context(), name, string(registrytest.Build{}.Store(t, store)))
	if err != nil {
		t.Fatal(err)
	}
	attach := func(by *oci.Store, predicateType string) {
		t.Helper()
		bundle := registrytest.Registry{Keys: keys}.Bundle(t, "approver", predicateType, struct{}{}, r.Digest)
		if _, err := by.PutEvidence(t.Context(), name, evidence.Bundle{Data: bundle}, r.Subjects()[:1]); err != nil {
			t.Fatal(err)
		}
	}
	attach(store, evidence.PredicateApproval)
	other := &Repositories{base: &http.Transport{}, Keychain: authn.NewMultiKeychain(), Environments: registrytest.Chain()}
	other.Environments.List[0].Registry = server.host()
	repo, err := other.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.(*external).writer.SetReferrersCapability(true); err != nil {
		t.Fatal(err)
	}
	attach(oci.New(other.Open, oci.Options{}), evidence.PredicateQuarantine)
	found, err := registrytest.Bundles(store.Evidence(t.Context(), name, r.Digest))
	if err != nil || len(found) != 2 {
		t.Errorf("%d bundles are seen, error %v, want both", len(found), err)
	}
}

// A registry that cannot be reached, or that fails, is unavailable and named.
func TestExternalUnavailable(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(odd.Close)
	for _, url := range []string{closed.URL, odd.URL} {
		host := strings.TrimPrefix(url, "http://")
		_, err := storeOver(host, "").Release(t.Context(), "staging/"+registrytest.Model, "1.0.0")
		if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), host) {
			t.Errorf("error %v (%s), want CodeUnavailable that names %s", err, registry.CodeOf(err), host)
		}
	}
}

// keychainOf gives everybody the same credential.
type keychainOf authn.AuthConfig

func (k keychainOf) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(authn.AuthConfig(k)), nil
}

// Credentials go to the registry that they are for, and no error holds them.
func TestExternalCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config authn.AuthConfig
		want   auth.Credential
		name   string
	}{
		{authn.AuthConfig{}, auth.EmptyCredential, "none"},
		{authn.AuthConfig{Username: "alice", Password: "secret"}, auth.Credential{Username: "alice", Password: "secret"}, "alice"},
		{authn.AuthConfig{Username: "<token>", IdentityToken: "secret"}, auth.Credential{Username: "<token>", RefreshToken: "secret"}, "a token"},
		{authn.AuthConfig{RegistryToken: "secret"}, auth.Credential{AccessToken: "secret"}, "a token"},
		{authn.AuthConfig{Password: "secret"}, auth.Credential{Password: "secret"}, "a token"},
	} {
		contents := &Repositories{Keychain: keychainOf(c.config)}
		var told []string
		contents.Tell = func(host, credential string) { told = append(told, host+" "+credential) }
		client := contents.client("registry.example.com", "registry.example.com:443")
		if name := contents.UsedFor("registry.example.com"); name != "none" {
			t.Errorf("before it is asked for, the credential %q was used", name)
		}
		if got, err := client.Credential(t.Context(), "registry.example.com:443"); err != nil || got != c.want {
			t.Errorf("credential %+v, error %v, want %+v", got, err, c.want)
		}
		if got, err := client.Credential(t.Context(), "elsewhere.example.com"); err != nil || got != auth.EmptyCredential {
			t.Errorf("elsewhere gets %+v, error %v", got, err)
		}
		if name := contents.UsedFor("registry.example.com"); name != c.name {
			t.Errorf("the credential %q was used, want %q", name, c.name)
		}
		_, _ = client.Credential(t.Context(), "registry.example.com:443") // the same is not told twice
		if want := []string{"registry.example.com " + c.name}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		err := (&external{from: contents, host: "registry.example.com"}).explain(t.Context(), auth.ErrBasicCredentialNotFound)
		if !strings.Contains(err.Error(), "(credential: "+c.name+")") || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v, want it to name %q", err, c.name)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1": true, "127.8.9.1:5000": true, "[::1]": true, "[::1]:5000": true,
		"registry.example.com": false, "10.0.0.1:5000": false, "localhost.example.com": false, "127.0.0.1.example.com": false, "[fe80::1]:5000": false, "0.0.0.0:5000": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
}

// Whoever may push can describe things wrongly, in manifests and, where there is no
// referrers API, in the list of referrers. That is no failure, and hides
// nothing that is described rightly beside it.
func TestExternalPassesOverLies(t *testing.T) {
	t.Parallel()
	const name = "staging/" + registrytest.Model
	server := newWatched(t, byOthers())
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	store := storeOver(server.host(), "")
	r, err := store.Release(t.Context(), name, string(registrytest.Build{}.Store(t, store)))
	if err != nil {
		t.Fatal(err)
	}
	repo, err := orasremote.NewRepository(server.host() + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	tag := func(index ocispec.Index, name string) {
		t.Helper()
		raw, err := json.Marshal(index)
		if err != nil {
			t.Fatal(err)
		}
		desc := ocispec.Descriptor{MediaType: index.MediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		if err := repo.PushReference(t.Context(), desc, bytes.NewReader(raw), name); err != nil {
			t.Fatal(err)
		}
	}
	bundle := registrytest.Registry{Keys: keys}.Bundle(t, "approver", evidence.PredicateQuarantine, struct{}{}, r.Digest)
	stored, err := store.PutEvidence(t.Context(), name, evidence.Bundle{Data: bundle}, r.Subjects()[:1])
	if err != nil {
		t.Fatal(err)
	}
	right, err := repo.Resolve(t.Context(), string(stored[0]))
	if err != nil {
		t.Fatal(err)
	}
	longer, shorter, other := right, right, right
	longer.Size++
	shorter.Size--
	other.MediaType = ocispec.MediaTypeImageIndex
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	list := strings.Replace(string(r.Digest), ":", "-", 1)
	for _, lie := range []ocispec.Descriptor{longer, shorter, other} {
		for _, c := range []struct {
			listed []ocispec.Descriptor
			found  int
		}{{[]ocispec.Descriptor{lie, right}, 1}, {[]ocispec.Descriptor{right, lie}, 1}, {[]ocispec.Descriptor{lie}, 0}} {
			index.Manifests = c.listed
			tag(index, list)
			if found, err := registrytest.Bundles(store.Evidence(t.Context(), name, r.Digest)); err != nil || len(found) != c.found {
				t.Errorf("listed as %+v: %d bundles, error %v, want %d", c.listed, len(found), err, c.found)
			}
		}
		if err := store.Relist(t.Context(), name, right.Digest); err != nil {
			t.Error(err)
		}
		if found, err := registrytest.Bundles(store.Evidence(t.Context(), name, r.Digest)); err != nil || len(found) != 1 {
			t.Errorf("listed again beside %+v: %d bundles, error %v", lie, len(found), err)
		}
	}
}
