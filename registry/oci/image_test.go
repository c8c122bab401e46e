package oci_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// imagePart is the image form of an engine that is stored.
func (w *world) imagePart(p storage.Part) storage.Part {
	p.Role, p.Engine.Digest = artifact.PartImage, w.parts["engine "+p.Engine.Label()].Digest
	return p
}

// withImages assembles the sample release with the image forms of its engines.
func (w *world) withImages(t testing.TB, more ...storage.PartRef) (registry.Digest, error) {
	t.Helper()
	a := w.assembly()
	a.Version, a.Tags = "1.1.0", []string{"1.1.0"}
	for _, name := range []string{"engine linux-amd64-v3/int8", "engine linux-amd64-v1/fp32", "limits", "interface"} {
		a.Parts = append(a.Parts, w.parts[name])
	}
	for _, p := range w.engineParts() {
		ref, err := w.store.PutPart(t.Context(), staging, w.imagePart(p))
		if err != nil {
			t.Fatal(err)
		}
		a.Parts = append(a.Parts, ref)
	}
	a.Parts = append(a.Parts, more...)
	return w.store.Assemble(t.Context(), staging, a)
}

// A release names the image form of each engine. The digests are those that every version of the program must make.
func TestImages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t, options{Options: oci.Options{}})
	d, err := w.withImages(t)
	if err != nil {
		t.Fatal(err)
	}
	const want = registry.Digest("sha256:ca143689b23a09867925cb60ef5248704a71fd647c105f892e48b8580d29eefc")
	if d != want {
		t.Errorf("the release with image forms is %s, want %s", d, want)
	}
	r, err := w.store.Release(ctx, staging, "1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Subjects()) != 5 || len(r.Judged()) != 3 || len(r.Order) != 2 {
		t.Errorf("it has the subjects %+v, and the order %v", r.Subjects(), r.Order)
	}
	for _, e := range r.Engines {
		s, ok := r.Subject(e.Image.Digest)
		if !ok || s.Engine != e.Digest || s.Size != e.Image.Size || s.Name != e.Label()+" (image)" {
			t.Errorf("the image form of %s is the subject %+v", e.Label(), s)
		}
		dir := t.TempDir()
		part, err := w.store.Fetch(ctx, staging, e.Image.Digest, dir)
		if err != nil || part.Role != artifact.PartImage || part.ImageOf != e.Digest {
			t.Fatalf("image of %s: %+v, error %v", e.Label(), part, err)
		}
		engine := t.TempDir()
		fetched, err := w.store.Fetch(ctx, staging, e.Digest, engine)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, part.Files[0].Path))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		left := len(fetched.Files)
		for r := tar.NewReader(f); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeDir {
				continue
			}
			left--
			got, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if is, err := os.ReadFile(filepath.Join(engine, strings.TrimPrefix(h.Name, "models/"))); err != nil || string(is) != string(got) {
				t.Errorf("%s has %q in the image and %q in the engine, error %v", h.Name, got, is, err)
			}
		}
		if left != 0 {
			t.Errorf("%d files of %s are not in its image", left, e.Label())
		}
	}
	if err := w.store.Copy(ctx, staging, prod, r, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Rehash(ctx, prod, r); err != nil {
		t.Error(err)
	}
	if _, err := w.store.Engine(ctx, staging, r.Engines[0].Image.Digest); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("an image as an engine: error %v, want CodeNotFound", err)
	}
}

// An image is the same whenever and wherever it is made, and needs no content that is stored already.
func TestImageIsPure(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t, options{}), newWorld(t, options{reverse: true})
	for i, p := range w.engineParts() {
		first, err := w.store.PutPart(t.Context(), staging, w.imagePart(p))
		if err != nil {
			t.Fatal(err)
		}
		again := other.imagePart(other.engineParts()[i])
		for at := range again.Files {
			again.Files[at].Open = nil
		}
		second, err := other.store.PutPart(t.Context(), staging, again)
		if err != nil || first != second {
			t.Errorf("%s: images %v and %v, error %v", p.Engine.Label(), first, second, err)
		}
	}
}

// A release has one image form of each engine, or none.
func TestImagesAreComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	ctx := t.Context()
	parts := w.engineParts()
	strange := w.imagePart(parts[0])
	strange.Engine.Digest = digest.FromString("an engine of another release")
	ref, err := w.store.PutPart(ctx, staging, strange)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.withImages(t, ref); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "is of no engine of it") {
		t.Errorf("an image of a strange engine: error %v", err)
	}
	second := w.imagePart(parts[0])
	second.Files = second.Files[:1]
	second.Files[0] = files("other.onnx", "other")[0]
	if ref, err = w.store.PutPart(ctx, staging, second); err != nil {
		t.Fatal(err)
	}
	if _, err := w.withImages(t, ref); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "has two image forms") {
		t.Errorf("two images of an engine: error %v", err)
	}
	a := w.assembly()
	for _, name := range []string{"engine linux-amd64-v3/int8", "engine linux-amd64-v1/fp32", "limits", "interface"} {
		a.Parts = append(a.Parts, w.parts[name])
	}
	if ref, err = w.store.PutPart(ctx, staging, w.imagePart(parts[0])); err != nil {
		t.Fatal(err)
	}
	a.Parts = append(a.Parts, ref)
	if _, err := w.store.Assemble(ctx, staging, a); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "has no image form, and other engines have one") {
		t.Errorf("an image of one engine of two: error %v", err)
	}
}

// Files that are not what they are said to be make no image.
func TestImageOfChangedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	p := w.imagePart(w.engineParts()[0])
	changed := strings.Repeat("x", int(p.Files[0].Size))
	p.Files[0].Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(changed)), nil }
	if _, err := w.store.PutPart(context.WithoutCancel(t.Context()), staging, p); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("error %v, want CodeDigest", err)
	}
}
