package distribution_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	orasmemory "oras.land/oras-go/v2/content/memory"
	orasremote "oras.land/oras-go/v2/registry/remote"
)

// orasRepository is a repository of the world as oras-go sees it.
func orasRepository(t *testing.T, w *world, repository string) *orasremote.Repository {
	t.Helper()
	r, err := orasremote.NewRepository(strings.TrimPrefix(w.url, "http://") + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	return r
}

// pack pushes an artifact with one layer, and about a subject if there is one.
func pack(t *testing.T, to oras.Target, artifactType, layer string, subject *ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	l, err := oras.PushBytes(t.Context(), to, "application/vnd.test.layer", []byte(layer))
	if err != nil {
		t.Fatal(err)
	}
	d, err := oras.PackManifest(t.Context(), to, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{
		Subject: subject, Layers: []ocispec.Descriptor{l},
		ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: "2026-11-21T00:00:00Z"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// oras-go pushes, attaches, lists, pulls, copies with referrers by mounts, and deletes.
func TestClientORAS(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		staging, prod := orasRepository(t, w, repo), orasRepository(t, w, "prod/vision/digits")
		d := pack(t, staging, "application/vnd.test", "engine", nil)
		if err := staging.Tag(ctx, d, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		signature := pack(t, staging, "application/vnd.signature", "signature", &d)
		var listed []ocispec.Descriptor
		err := staging.Referrers(ctx, d, "application/vnd.signature", func(page []ocispec.Descriptor) error {
			listed = append(listed, page...)
			return nil
		})
		if err != nil || len(listed) != 1 || listed[0].Digest != signature.Digest {
			t.Errorf("referrers: %v, %v", listed, err)
		}
		wantOrasTags(t, staging, "1.0.0") // and no tag of the fallback scheme

		pulled := orasmemory.New()
		if _, err := oras.Copy(ctx, staging, "1.0.0", pulled, "1.0.0", oras.DefaultCopyOptions); err != nil {
			t.Fatal(err)
		}
		var mounted atomic.Int32
		options := oras.DefaultExtendedCopyOptions
		options.MountFrom = func(context.Context, ocispec.Descriptor) ([]string, error) { return []string{repo}, nil }
		options.OnMounted = func(context.Context, ocispec.Descriptor) error { mounted.Add(1); return nil }
		if _, err := oras.ExtendedCopy(ctx, staging, "1.0.0", prod, "1.0.0", options); err != nil {
			t.Fatal(err)
		}
		if n := mounted.Load(); n != 3 { // two layers and the empty config
			t.Errorf("%d blobs were mounted, want 3", n)
		}
		if raw, err := content.FetchAll(ctx, prod, signature); err != nil || len(raw) == 0 {
			t.Errorf("the signature was not copied: %v", err)
		}
		if err := prod.Manifests().Delete(ctx, d); err != nil {
			t.Fatal(err)
		}
		if _, err := prod.Resolve(ctx, "1.0.0"); err == nil {
			t.Error("a deleted release can be resolved")
		}
		wantOrasTags(t, staging, "1.0.0")
	})
}

func wantOrasTags(t *testing.T, r *orasremote.Repository, want ...string) {
	t.Helper()
	var got []string
	err := r.Tags(t.Context(), "", func(tags []string) error {
		got = append(got, tags...)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("tags %v, %v; want %v", got, err, want)
	}
}

// go-containerregistry writes images and indexes, reads them whole, and copies them.
func TestClientContainerRegistry(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		host := strings.TrimPrefix(w.url, "http://")
		parse := func(s string) name.Reference {
			r, err := name.ParseReference(host+"/"+s, name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		options := []remote.Option{remote.WithContext(t.Context()), remote.WithTransport(w.client.Transport)}
		index, err := random.Index(10_000, 3, 2)
		must(t, err)
		must(t, remote.WriteIndex(parse(repo+":index"), index, options...))
		pulled, err := remote.Index(parse(repo+":index"), options...)
		must(t, err)
		must(t, validate.Index(pulled))

		source := parse(repo + ":image")
		image, err := random.Image(100_000, 2)
		must(t, err)
		must(t, remote.Write(source, image, options...))
		found, err := remote.Image(source, options...)
		must(t, err)
		must(t, validate.Image(found))
		copied := parse("prod/vision/digits:image")
		must(t, remote.Write(copied, found, options...)) // mounts layers that it read from here
		again, err := remote.Image(copied, options...)
		must(t, err)
		must(t, validate.Image(again))

		d, err := image.Digest()
		must(t, err)
		subject, err := partial.Descriptor(image)
		must(t, err)
		attach(t, parse, *subject, options)
		referrers, err := remote.Referrers(source.Context().Digest(d.String()), options...)
		must(t, err)
		manifest, err := referrers.IndexManifest()
		must(t, err)
		if len(manifest.Manifests) != 1 {
			t.Errorf("referrers: %+v", manifest.Manifests)
		}
		tags, err := remote.List(source.Context(), options...)
		must(t, err)
		if !slices.Equal(tags, []string{"image", "index"}) {
			t.Errorf("tags: %v", tags)
		}
		must(t, remote.Delete(source.Context().Digest(d.String()), options...))
		if _, err := remote.Head(source, options...); err == nil {
			t.Error("a deleted image is still there")
		}
	})
}

// attach pushes an image that refers to a subject, by its digest.
func attach(t *testing.T, parse func(string) name.Reference, subject v1.Descriptor, options []remote.Option) {
	t.Helper()
	attached, err := random.Image(1000, 1)
	must(t, err)
	about, ok := mutate.Subject(attached, subject).(v1.Image)
	if !ok {
		t.Fatal("an image became something else")
	}
	d, err := about.Digest()
	must(t, err)
	must(t, remote.Write(parse(repo+"@"+d.String()), about, options...))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
