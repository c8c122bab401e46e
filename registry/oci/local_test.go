package oci_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/errdef"
	orasregistry "oras.land/oras-go/v2/registry"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func blobDescriptor(data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// A blob is read through the repositories that it belongs to and no other.
func TestLocalMembership(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	blobs, refs := mem.NewBlobs(), mem.New()
	a, b := oci.Local(blobs, refs, "a/m"), oci.Local(blobs, refs, "b/m")
	desc := blobDescriptor([]byte("secret"))
	if err := a.Push(ctx, desc, bytes.NewReader([]byte("secret"))); err != nil {
		t.Fatal(err)
	}
	if data, err := content.FetchAll(ctx, a, desc); err != nil || string(data) != "secret" {
		t.Errorf("got %q, %v", data, err)
	}
	_, err := b.Fetch(ctx, desc)
	if !errors.Is(err, errdef.ErrNotFound) || !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("got %v", err)
	}
	if there, err := b.Exists(ctx, desc); there || err != nil {
		t.Errorf("got %t, %v", there, err)
	}
	longer := desc
	longer.Size++
	if there, err := a.Exists(ctx, longer); there || err != nil {
		t.Errorf("with another size: got %t, %v", there, err)
	}
}

// Mounting shares what the source owns, and only that.
func TestLocalMount(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	blobs, refs := mem.NewBlobs(), mem.New()
	a, b, c := oci.Local(blobs, refs, "a/m"), oci.Local(blobs, refs, "b/m"), oci.Local(blobs, refs, "c/m")
	desc := blobDescriptor([]byte("secret"))
	if err := a.Push(ctx, desc, bytes.NewReader([]byte("secret"))); err != nil {
		t.Fatal(err)
	}
	mount := func(to oci.Repository, from string, get func() (io.ReadCloser, error)) error {
		return to.(orasregistry.Mounter).Mount(ctx, desc, from, get)
	}
	if err := mount(b, "c/m", nil); !errors.Is(err, errdef.ErrNotFound) {
		t.Errorf("mount from a stranger: got %v", err)
	}
	never := func() (io.ReadCloser, error) { return nil, errors.New("asked for bytes") }
	if err := mount(b, "a/m", never); err != nil {
		t.Error(err)
	}
	if there, _ := b.Exists(ctx, desc); !there {
		t.Error("the blob was not mounted")
	}
	wrong := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("forged"))), nil }
	if err := mount(oci.Local(mem.NewBlobs(), refs, "c/m"), "x/m", wrong); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("other bytes: got %v", err)
	}
	right := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("secret"))), nil }
	if err := mount(c, "x/m", right); err != nil {
		t.Error(err)
	}
}

// A manifest is recorded with what can be asked about it.
func TestLocalRecordsManifests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	m, err := w.refs.Manifest(t.Context(), staging, w.evidence[0])
	if err != nil {
		t.Fatal(err)
	}
	if m.Derived.ArtifactType != bundleType || m.Derived.Subject != w.release.Digest ||
		m.Derived.Annotations["dev.sigstore.bundle.predicateType"] != evidence.PredicateSign {
		t.Errorf("got %+v", m)
	}
	m, err = w.refs.Manifest(t.Context(), staging, w.release.Digest)
	if err != nil || m.Derived.ArtifactType != "application/vnd.mlpromote.release.v1+json" ||
		m.MediaType != ocispec.MediaTypeImageIndex || m.Size != w.release.Size {
		t.Errorf("got %+v, %v", m, err)
	}
	plain := w.pushRaw(t, staging, ocispec.MediaTypeImageManifest, []byte(`{"schemaVersion":2,"config":{"mediaType":"application/x"}}`))
	if m, err = w.refs.Manifest(t.Context(), staging, plain); err != nil || m.Derived.ArtifactType != "application/x" {
		t.Errorf("without artifactType: got %+v, %v", m, err)
	}
	referrers, err := orasregistry.Referrers(t.Context(), oci.Local(w.blobs, w.refs, staging),
		ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: w.release.Digest}, bundleType)
	if err != nil || len(referrers) != 1 || referrers[0].Digest != w.evidence[0] {
		t.Errorf("referrers %v, %v", referrers, err)
	}
}

func TestLocalRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	repo := oci.Local(mem.NewBlobs(), mem.New(), "a/m")
	index := func(raw string) error {
		desc := blobDescriptor([]byte(raw))
		desc.MediaType = ocispec.MediaTypeImageIndex
		return repo.Push(ctx, desc, bytes.NewReader([]byte(raw)))
	}
	wantCode(t, index("x"), registry.CodeInvalid)
	wantCode(t, index(`{"subject":{"digest":"x"}}`), registry.CodeInvalid)
	desc := blobDescriptor([]byte("a"))
	wantCode(t, repo.Push(ctx, desc, bytes.NewReader([]byte("b"))), registry.CodeDigest)
	desc.MediaType = ocispec.MediaTypeImageManifest
	wantCode(t, repo.Push(ctx, desc, bytes.NewReader([]byte("b"))), registry.CodeDigest)
	wantCode(t, repo.Push(ctx, desc, bytes.NewReader([]byte("ab"))), registry.CodeDigest)
	desc.Size = 5 << 20
	wantCode(t, repo.Push(ctx, desc, bytes.NewReader([]byte("a"))), registry.CodeInvalid)
	wantCode(t, repo.Push(ctx, ocispec.Descriptor{Digest: "x"}, bytes.NewReader(nil)), registry.CodeInvalid)
	wantCode(t, repo.Tag(ctx, desc, "1.0.0"), registry.CodeNotFound)
	wantCode(t, repo.Tag(ctx, desc, "+"), registry.CodeInvalid)
	_, err := repo.Resolve(ctx, "1.0.0")
	wantCode(t, err, registry.CodeNotFound)
}

// oras-go takes a local repository for what it is: a target with referrers.
func TestLocalIsOrasTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	source := oci.Local(w.blobs, w.refs, staging)
	to := memory.New()
	desc, err := oras.ExtendedCopy(t.Context(), source, "1.0.0", to, "copied", oras.DefaultExtendedCopyOptions)
	if err != nil || desc.Digest != w.release.Digest {
		t.Fatalf("got %v, %v", desc, err)
	}
	found, err := to.Predecessors(t.Context(), desc)
	if err != nil || !slices.ContainsFunc(found, func(d ocispec.Descriptor) bool { return d.Digest == w.evidence[0] }) {
		t.Errorf("the signature did not come along: %v, %v", found, err)
	}
	back := oci.Local(mem.NewBlobs(), mem.New(), prod)
	if _, err := oras.Copy(t.Context(), to, "copied", back, "1.0.0", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	store := oci.New(func(context.Context, string) (oci.Repository, error) { return back, nil }, oci.Options{})
	if r, err := store.Release(t.Context(), prod, "1.0.0"); err != nil || r.Digest != w.release.Digest {
		t.Errorf("got %v, %v", r.Digest, err)
	}
}

// What records repeat is made anew from the bytes.
func TestReindex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	ctx := t.Context()
	want, err := w.refs.Manifest(ctx, staging, w.evidence[0])
	if err != nil {
		t.Fatal(err)
	}
	wrong := want
	wrong.Derived = artifact.Derived{ArtifactType: "wrong"}
	if err := w.refs.PutManifest(ctx, staging, wrong); err != nil {
		t.Fatal(err)
	}
	if got, _ := registrytest.Bundles(w.store.Evidence(ctx, staging, w.release.Digest)); len(got) != 0 {
		t.Fatal("the record does not matter")
	}
	n, err := oci.Reindex(ctx, w.blobs, w.refs)
	if all := 6 + 5 + 4; n != all || err != nil { // sources, release, evidence
		t.Errorf("got %d, %v, want %d", n, err, all)
	}
	if got, _ := registrytest.Bundles(w.store.Evidence(ctx, staging, w.release.Digest)); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	b := &bad{Blobs: w.blobs, victim: w.evidence[0], change: func(data []byte) []byte { return data[1:] }, read: map[registry.Digest]bool{}}
	n, err = oci.Reindex(ctx, b, w.refs)
	wantCode(t, err, registry.CodeDigest, staging, string(w.evidence[0]))
	if n != 14 {
		t.Errorf("got %d, want the others", n)
	}
}
