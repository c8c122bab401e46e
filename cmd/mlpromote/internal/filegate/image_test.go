package filegate_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// gated is a registry behind a gate, with a client.
type gated struct {
	*oci.Store
	repo oci.Repository
	db   *mem.DB
	open func(ctx context.Context, repository string) (oci.Repository, error)
}

func newGated(t *testing.T) gated {
	t.Helper()
	c, db := behindGate(t)
	repo, err := c.Open(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	return gated{oci.New(c.Open, oci.Options{}), repo, db, c.Open}
}

// shipped is a release of one engine, part by part.
type shipped struct {
	assembly storage.Assembly
	part     storage.Part // the engine
	engine   storage.PartRef
}

func (g gated) put(t *testing.T, p storage.Part) storage.PartRef {
	t.Helper()
	ref, err := g.PutPart(t.Context(), repository, p)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// ship pushes all of a release but its image and its index.
func (g gated) ship(t *testing.T) shipped {
	t.Helper()
	s := shipped{part: engine(false, file("model.onnx", "weights", artifact.FileEngine), file("labels.txt", "cat\ndog\n", artifact.FileAsset))}
	limits := g.put(t, storage.Part{Role: artifact.PartLimits, Files: []storage.PartFile{file("limits.json", `{"v":1}`, "")}})
	iface := g.put(t, storage.Part{Role: artifact.PartInterface, Files: []storage.PartFile{file("interface.json", `{"v":1}`, "")}})
	s.part.Engine.Limits, s.part.Engine.Interface = limits.Digest, iface.Digest
	s.engine = g.put(t, s.part)
	s.part.Engine.Digest = s.engine.Digest
	s.assembly = storage.Assembly{Model: registrytest.Model, Version: "1.0.0", Revision: 1, Sources: s.part.Engine.Sources, Plan: digest.FromString("plan"),
		Parts: []storage.PartRef{limits, iface, s.engine}}
	return s
}

// planted makes an image that is said to be of an engine and has other bytes.
func planted(t *testing.T, e artifact.Engine) (imageform.Form, imageform.Open) {
	t.Helper()
	open := func(artifact.File) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("WEIGHTS")), nil }
	form, err := imageform.Make(t.Context(), imageform.Of(e, []artifact.File{{Path: "model.onnx", Size: 7}}), open)
	if err != nil {
		t.Fatal(err)
	}
	return form, open
}

// pushImage pushes an image as any client does.
func (g gated) pushImage(ctx context.Context, f imageform.Form, open imageform.Open) (storage.PartRef, error) {
	for _, b := range []struct {
		desc    ocispec.Descriptor
		content io.Reader
	}{
		{ocispec.Descriptor{MediaType: imageform.TypeLayer, Digest: f.Layer.Digest, Size: f.Layer.Size}, f.Archive.Open(open)},
		{ocispec.Descriptor{MediaType: imageform.TypeConfig, Digest: f.Config.Digest, Size: f.Config.Size}, bytes.NewReader(f.Config.Data)},
		{ocispec.Descriptor{MediaType: imageform.TypeManifest, Digest: f.Digest, Size: int64(len(f.Manifest))}, bytes.NewReader(f.Manifest)},
	} {
		if err := g.repo.Push(ctx, b.desc, b.content); err != nil {
			return storage.PartRef{}, err
		}
	}
	return storage.PartRef{Role: artifact.PartImage, Digest: f.Digest, Size: int64(len(f.Manifest))}, nil
}

const notItsForm = "is not the image form of engine"

// A service takes the image form of an engine, and no other image under its name.
func TestImageIsRecomputed(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s := g.ship(t)
	form, open := planted(t, s.part.Engine)
	if _, err := g.pushImage(t.Context(), form, open); err == nil || !strings.Contains(err.Error(), notItsForm) || !strings.Contains(err.Error(), "422") {
		t.Errorf("a planted image: error %v, want status 422 and %q", err, notItsForm)
	}
	if _, err := g.db.Manifest(t.Context(), repository, form.Digest); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("the planted image: %v, want that it is not stored", err)
	}
	image := g.put(t, storage.Part{Role: artifact.PartImage, Engine: s.part.Engine, Files: s.part.Files})
	s.assembly.Parts = append(s.assembly.Parts, image)
	d, err := g.Assemble(t.Context(), repository, s.assembly)
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Release(t.Context(), repository, string(d))
	if err != nil || r.Engines[0].Image.Digest != image.Digest {
		t.Errorf("engines %+v, error %v, want the image %s", r.Engines, err, image.Digest)
	}
}

// Clients push the manifests of an index in any order: an image that comes before its engine is looked at with the index.
func TestImageBeforeItsEngine(t *testing.T) {
	t.Parallel()
	known := newGated(t).ship(t).part // equal parts have equal digests everywhere
	for name, c := range map[string]struct {
		make func(*testing.T) (imageform.Form, imageform.Open)
		want string // of the refusal of the index
	}{
		"planted": {func(t *testing.T) (imageform.Form, imageform.Open) { return planted(t, known.Engine) }, notItsForm},
		"right": {func(t *testing.T) (imageform.Form, imageform.Open) {
			files := make([]artifact.File, 0, len(known.Files))
			for _, f := range known.Files {
				files = append(files, f.File)
			}
			open := func(f artifact.File) (io.ReadCloser, error) {
				return map[string]storage.PartFile{known.Files[0].Path: known.Files[0], known.Files[1].Path: known.Files[1]}[f.Path].Open()
			}
			form, err := imageform.Make(t.Context(), imageform.Of(known.Engine, files), open)
			if err != nil {
				t.Fatal(err)
			}
			return form, open
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			form, open := c.make(t)
			image, err := g.pushImage(t.Context(), form, open)
			if err != nil {
				t.Fatalf("an image before its engine: %v", err)
			}
			s := g.ship(t)
			s.assembly.Parts = append(s.assembly.Parts, image)
			d, err := g.Assemble(t.Context(), repository, s.assembly)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the index: error %v, want %q", err, c.want)
			}
			if _, err := g.db.Manifest(t.Context(), repository, d); d != "" && err == nil {
				t.Error("the index is stored")
			}
		})
	}
}

// Engines of other repositories do not count, so that a push does not tell whether another repository has one.
func TestImageOfAnotherRepository(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s := g.ship(t)
	form, open := planted(t, s.part.Engine)
	other, err := g.open(t.Context(), "staging/vision/letters")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (gated{repo: other}).pushImage(t.Context(), form, open); err != nil {
		t.Errorf("error %v, want it stored as any image without an engine", err)
	}
	if _, err := g.pushImage(t.Context(), form, open); err == nil || !strings.Contains(err.Error(), notItsForm) {
		t.Errorf("in the repository of the engine: error %v", err)
	}
}

// An image may name a manifest that is no engine.
func TestImageOfNoEngine(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s := g.ship(t)
	e := s.part.Engine
	e.Digest = s.assembly.Parts[0].Digest
	form, open := planted(t, e)
	if _, err := g.pushImage(t.Context(), form, open); err == nil || !strings.Contains(err.Error(), "which is no engine") {
		t.Errorf("an image of the limits: error %v", err)
	}
}
