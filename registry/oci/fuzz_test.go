package oci_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// record stores any bytes as a manifest, also what no repository would take.
func record(t *testing.T, w *world, mediaType string, raw []byte) registry.Digest {
	d := digest.FromBytes(raw)
	if err := w.blobs.Put(t.Context(), d, int64(len(raw)), bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if err := w.refs.PutManifest(t.Context(), staging, storage.Manifest{Digest: d, MediaType: mediaType, Size: int64(len(raw))}); err != nil {
		t.Fatal(err)
	}
	return d
}

// known says whether an error is one that a reader may give for any bytes at all.
func known(err error) bool {
	switch registry.CodeOf(err) {
	case registry.CodeInvalid, registry.CodeTrust, registry.CodeNotFound, registry.CodeDigest:
		return true
	}
	return err == nil
}

// Whatever an index holds, it is read or refused; what is read keeps the rules.
func FuzzRelease(f *testing.F) {
	w := newWorld(f, options{})
	f.Add(stored(f, w.blobs, w.release.Digest))
	f.Add(stored(f, w.blobs, w.sources))
	f.Add([]byte(`{"schemaVersion":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := record(t, w, ocispec.MediaTypeImageIndex, raw)
		r, err := w.store.Release(t.Context(), staging, string(d))
		if !known(err) {
			t.Fatalf("unexpected %s: %v", registry.CodeOf(err), err)
		}
		if err == nil && (r.Version == "" || r.Revision < 1 || len(r.Engines) == 0 || r.Engines[0].Limits != r.Limits) {
			t.Fatalf("read %+v", r)
		}
	})
}

// Whatever a manifest holds, no file is written outside the folder.
func FuzzFetch(f *testing.F) {
	w := newWorld(f, options{})
	for _, name := range []string{"engine linux-amd64-v3/int8", "limits", "cases"} {
		f.Add(stored(f, w.blobs, w.parts[name].Digest))
	}
	f.Add(stored(f, w.blobs, w.evidence[0]))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := record(t, w, ocispec.MediaTypeImageManifest, raw)
		got, err := w.store.Fetch(t.Context(), staging, d, "")
		if !known(err) {
			t.Fatalf("unexpected %s: %v", registry.CodeOf(err), err)
		}
		if err != nil {
			return
		}
		for _, file := range got.Files {
			if !filepath.IsLocal(file.Path) || strings.Contains(file.Path, `\`) || file.Size < 0 {
				t.Fatalf("read the file %+v", file)
			}
		}
	})
}

// Whatever the config of cases holds, a set that is read covers its cases once.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"count":5,"origin":"recorded","labels":"label","shards":[{"file":"a","first":0,"count":3},{"file":"b","first":3,"count":2}]}`))
	f.Add([]byte(`{"count":1,"shards":[{"file":"a","first":0,"count":1}]}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		w := &world{blobs: mem.NewBlobs(), refs: mem.New()}
		w.store = newStore(w.blobs, w.refs, oci.Options{})
		blob := w.pushRaw(t, staging, "application/octet-stream", config)
		manifest := ocispec.Manifest{
			MediaType:    ocispec.MediaTypeImageManifest,
			ArtifactType: "application/vnd.mlpromote.cases.v1+json",
			Config:       ocispec.Descriptor{MediaType: "application/vnd.mlpromote.cases.v1+json", Digest: blob, Size: int64(len(config))},
			Annotations:  map[string]string{"dev.mlpromote.format": "1", "dev.mlpromote.role": "cases"},
		}
		manifest.SchemaVersion = 2
		for _, name := range []string{"a", "b"} {
			manifest.Layers = append(manifest.Layers, ocispec.Descriptor{
				MediaType: "application/vnd.safetensors", Digest: digest.FromString(name), Size: 1,
				Annotations: map[string]string{"org.opencontainers.image.title": name},
			})
		}
		raw, err := registry.CanonicalJSON(manifest)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.store.Fetch(t.Context(), staging, record(t, w, ocispec.MediaTypeImageManifest, raw), "")
		if !known(err) {
			t.Fatalf("unexpected %s: %v", registry.CodeOf(err), err)
		}
		if err != nil {
			return
		}
		sum := 0
		for _, shard := range got.Set.Shards {
			sum += shard.Count
		}
		if sum != got.Set.Count || len(got.Set.Shards) != 2 {
			t.Fatalf("read %+v", got.Set)
		}
	})
}

// Whatever a bundle holds, it is stored or refused, and then read or skipped.
func FuzzEvidence(f *testing.F) {
	w := newWorld(f, options{})
	f.Add(bundle(evidence.PredicateParity))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := w.store.PutEvidence(t.Context(), staging, evidence.Bundle{Data: data}, w.release.Subjects()[:1])
		if !known(err) {
			t.Fatalf("unexpected %s: %v", registry.CodeOf(err), err)
		}
		if _, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, w.release.Digest)); err != nil &&
			registry.CodeOf(err) != registry.CodeInvalid {
			t.Fatal(err)
		}
	})
}
