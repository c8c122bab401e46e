package oci_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// What was put together reads back as it was.
func TestRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	got, err := w.store.Release(t.Context(), staging, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	want := artifact.Release{
		Digest: got.Digest, Size: int64(len(stored(t, w.blobs, got.Digest))),
		Model: "vision/digits", Version: "1.0.0", Revision: 1,
		Sources: w.sources, Plan: digest.FromString("plan"),
		Limits: w.parts["limits"].Digest, Interface: w.parts["interface"].Digest,
	}
	want.Order = []registry.Digest{w.parts["engine linux-amd64-v3/int8"].Digest, w.parts["engine linux-amd64-v1/fp32"].Digest}
	for i, p := range w.engineParts() { // they are in canonical order: by target
		e := p.Engine
		ref := w.parts["engine "+e.Label()]
		e.Digest, e.Size, e.Bytes = ref.Digest, ref.Size, []int64{11, 11 + 5 + 4}[i]
		want.Engines = append(want.Engines, e)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(artifact.Target{})); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
}

func TestReleaseNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	_, err := w.store.Release(t.Context(), staging, "9.9.9")
	wantCode(t, err, registry.CodeNotFound, staging, "9.9.9")
	_, err = w.store.Release(t.Context(), prod, string(w.release.Digest))
	wantCode(t, err, registry.CodeNotFound, prod)
	_, err = w.store.Release(t.Context(), sources, string(w.sources))
	wantCode(t, err, registry.CodeInvalid, "artifact type")
	_, err = w.store.Release(t.Context(), staging, string(w.release.Limits))
	wantCode(t, err, registry.CodeInvalid, "not a release")
}

func TestSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	got, err := w.store.Sources(t.Context(), sources, w.sources)
	if err != nil {
		t.Fatal(err)
	}
	want := storage.Sources{Digest: w.sources, Model: "vision/digits", Parts: map[artifact.PartKind]storage.PartRef{}}
	for _, p := range sourceParts() {
		want.Parts[p.Role] = w.parts[string(p.Role)]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	_, err = w.store.Sources(t.Context(), staging, w.release.Digest)
	wantCode(t, err, registry.CodeInvalid)
}

// A part comes back with the bytes of its files, its engine and its set.
func TestFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, p := range append(sourceParts(), w.engineParts()...) {
		name, repository := string(p.Role), sources
		if p.Role == artifact.PartEngine {
			name, repository = name+" "+p.Engine.Label(), staging
		}
		dir := t.TempDir()
		got, err := w.store.Fetch(t.Context(), repository, w.parts[name].Digest, dir)
		if err != nil {
			t.Fatalf("fetch %s: %v", name, err)
		}
		if diff := cmp.Diff(p.Set, got.Set); diff != "" || got.Role != p.Role {
			t.Errorf("%s: role %s, set (-want +got):\n%s", name, got.Role, diff)
		}
		if digest.FromBytes(got.Manifest) != w.parts[name].Digest {
			t.Errorf("%s: the manifest is not the stored one", name)
		}
		for _, f := range p.Files {
			if !slices.Contains(got.Files, f.File) {
				t.Errorf("%s: file %v is missing in %v", name, f.File, got.Files)
			}
			data, err := os.ReadFile(filepath.Join(dir, f.Path))
			if err != nil || digest.FromBytes(data) != f.Digest {
				t.Errorf("%s: file %s was written as %q, %v", name, f.Path, data, err)
			}
		}
	}
}

// Without a folder only the description is read.
func TestFetchDescription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	got, err := w.store.Fetch(t.Context(), staging, w.release.Engines[1].Digest, "")
	if err != nil || len(got.Files) != 3 || !got.Engine.NativeCode {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The execution providers that an engine declares are part of it, in their order.
func TestProvidersAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	part := w.engineParts()[0]
	part.Engine.Providers = []artifact.Provider{{Name: "CUDAExecutionProvider", Options: map[string]string{"device_id": "1"}},
		{Name: "CPUExecutionProvider"}}
	ref, err := w.store.PutPart(t.Context(), staging, part)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(stored(t, w.blobs, ref.Digest), []byte(`"dev.mlpromote.providers":"[{\"name\":\"CUDAExecutionProvider\",\"options\":{\"device_id\":\"1\"}},\"CPUExecutionProvider\"]"`)) {
		t.Errorf("manifest %s", stored(t, w.blobs, ref.Digest))
	}
	got, err := w.store.Fetch(t.Context(), staging, ref.Digest, "")
	if err != nil || !reflect.DeepEqual(got.Engine.Providers, part.Engine.Providers) {
		t.Errorf("read back %v, %v", got.Engine.Providers, err)
	}
}

// A file that is there is not written over, and a link leads nowhere.
func TestFetchWritesOverNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	engine := w.release.Engines[1].Digest
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := w.store.Fetch(t.Context(), staging, engine, dir)
	wantCode(t, err, registry.CodeInvalid, "model.onnx", "empty folder")
	if data, _ := os.ReadFile(filepath.Join(dir, "model.onnx")); string(data) != "mine" {
		t.Errorf("the file is now %q", data)
	}
	linked := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(linked, "labels")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Fetch(t.Context(), staging, engine, linked); err == nil {
		t.Error("a link was followed out of the folder")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("something was written outside: %v", entries)
	}
}

// The order in which things are handed in makes no difference, but for that of engines; a recorded time does.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t, options{}), newWorld(t, options{reverse: true})
	if a.release.Digest != b.release.Digest || a.sources != b.sources {
		t.Errorf("the same release is %s and %s, its sources %s and %s", a.release.Digest, b.release.Digest, a.sources, b.sources)
	}
	if diff := cmp.Diff(a.evidence, b.evidence); diff != "" {
		t.Errorf("the same evidence differs:\n%s", diff)
	}
	preferred := a.assemble(t, staging, options{}, a.assembly(), "limits", "engine linux-amd64-v1/fp32", "interface", "engine linux-amd64-v3/int8")
	r, err := a.store.Release(t.Context(), staging, string(preferred))
	if err != nil || r.Digest == a.release.Digest || r.Ranked()[0].Label() != "linux-amd64-v1/fp32" || r.Engines[0].Digest != a.release.Engines[0].Digest {
		t.Errorf("with another engine first: got %+v, error %v", r, err)
	}
	epoch := oci.Options{Created: time.Unix(1_700_000_000, 0)}
	c, d := newWorld(t, options{Options: epoch}), newWorld(t, options{Options: epoch, reverse: true})
	if c.release.Digest != d.release.Digest || c.release.Digest == a.release.Digest {
		t.Errorf("with a time the release is %s and %s, without %s", c.release.Digest, d.release.Digest, a.release.Digest)
	}
}

// What is there is neither opened nor stored again.
func TestPutPartTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	p := w.engineParts()[1]
	for i := range p.Files {
		p.Files[i].Open = nil
	}
	ref, err := w.store.PutPart(t.Context(), staging, p)
	if err != nil || ref != w.parts["engine linux-amd64-v3/int8"] {
		t.Errorf("got %v, %v", ref, err)
	}
	_, err = w.store.PutPart(t.Context(), prod, p)
	wantCode(t, err, registry.CodeNotFound, prod, "labels/digits.txt")
}

// A part whose files are not what they are said to be is not stored.
func TestPutPartChecksFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	p := w.engineParts()[0]
	p.Files[0].Digest = digest.FromString("something else")
	_, err := w.store.PutPart(t.Context(), staging, p)
	wantCode(t, err, registry.CodeDigest, staging, "model.onnx", string(p.Files[0].Digest))
}

// Rehash tells how far it is, up to everything.
func TestRehashProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	var last, total int64
	store := newStore(w.blobs, w.refs, oci.Options{Progress: func(d, of int64) {
		if d < last || d > of {
			t.Errorf("%d of %d bytes after %d", d, of, last)
		}
		last, total = d, of
	}})
	if err := store.Rehash(t.Context(), staging, w.release); err != nil {
		t.Fatal(err)
	}
	if last != total || last == 0 {
		t.Errorf("ended with %d of %d bytes", last, total)
	}
}

// A Store without a way to open anything says so.
func TestNoStore(t *testing.T) {
	t.Parallel()
	_, err := oci.New(nil, oci.Options{}).Release(t.Context(), staging, "1.0.0")
	wantCode(t, err, registry.CodeUnavailable)
}
