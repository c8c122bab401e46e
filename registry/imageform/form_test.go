package imageform_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	containerregistry "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
)

func engineOf(c content) imageform.Engine {
	e := artifact.Engine{Digest: digest.FromString("engine"), Target: artifact.Target{OS: "linux", CPU: artifact.TargetCPU{Arch: "arm64"}}}
	return imageform.Of(e, c.files())
}

func makeForm(t testing.TB, c content) imageform.Form {
	t.Helper()
	f, err := imageform.Make(t.Context(), engineOf(c), c.open)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The bytes are fixed: whoever changes them makes other images of all engines there are.
func TestMake(t *testing.T) {
	t.Parallel()
	f := makeForm(t, content{"model.onnx": "weights", "variables/a": "b"})
	const config = `{"architecture":"arm64","os":"linux","rootfs":{"diff_ids":["LAYER"],"type":"layers"}}`
	if want := strings.ReplaceAll(config, "LAYER", string(f.Layer.Digest)); string(f.Config.Data) != want {
		t.Errorf("the config is %s, want %s", f.Config.Data, want)
	}
	const manifest = `{"annotations":{"dev.mlpromote.engine":"sha256:ENGINE","dev.mlpromote.format":"1","dev.mlpromote.role":"image"},` +
		`"config":{"digest":"CONFIG","mediaType":"application/vnd.oci.image.config.v1+json","size":151},` +
		`"layers":[{"digest":"LAYER","mediaType":"application/vnd.oci.image.layer.v1.tar","size":4096}],` +
		`"mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}`
	want := strings.NewReplacer("ENGINE", digest.FromString("engine").Encoded(), "CONFIG", string(f.Config.Digest), "LAYER", string(f.Layer.Digest)).Replace(manifest)
	if string(f.Manifest) != want || f.Digest != digest.FromString(want) {
		t.Errorf("the manifest is %s, want %s", f.Manifest, want)
	}
	if golden := registry.Digest("sha256:2f1eba0c8ea5537b474964c7d355cacc61c34767f9b31774a2d1c610c64a48dc"); f.Digest != golden {
		t.Errorf("the image is %s, want %s", f.Digest, golden)
	}
}

// local is an image that go-containerregistry reads.
type local struct {
	imageform.Form
	content
}

func (l local) RawConfigFile() ([]byte, error)      { return l.Config.Data, nil }
func (l local) RawManifest() ([]byte, error)        { return l.Manifest, nil }
func (l local) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (l local) LayerByDigest(h containerregistry.Hash) (partial.CompressedLayer, error) {
	return layer{l, h}, nil
}

type layer struct {
	local
	hash containerregistry.Hash
}

func (l layer) Digest() (containerregistry.Hash, error) { return l.hash, nil }
func (l layer) Compressed() (io.ReadCloser, error)      { return l.Archive.Open(l.open), nil }
func (l layer) Size() (int64, error)                    { return l.Layer.Size, nil }
func (l layer) MediaType() (types.MediaType, error)     { return types.OCIUncompressedLayer, nil }

// go-containerregistry finds nothing wrong: digests, sizes and diff IDs fit, and the layer is the file system of the image.
func TestFormInContainerRegistry(t *testing.T) {
	t.Parallel()
	for name, c := range samples() {
		img, err := partial.CompressedToImage(local{makeForm(t, c), c})
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(img, validate.Fast); err != nil { // without it, it takes all layers for gzip
			t.Errorf("%s: %v", name, err)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%s: %d layers, error %v", name, len(layers), err)
		}
		diffID, err := layers[0].DiffID()
		if err != nil {
			t.Fatal(err)
		}
		plain, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if hash, size, err := containerregistry.SHA256(plain); err != nil || hash != diffID || size != makeForm(t, c).Layer.Size {
			t.Errorf("%s: the layer is %s with %d bytes, its diff ID %s, error %v", name, hash, size, diffID, err)
		}
		config, err := img.ConfigFile()
		if err != nil || config.OS != "linux" || config.Architecture != "arm64" || len(config.RootFS.DiffIDs) != 1 || !config.Created.IsZero() || len(config.History) != 0 {
			t.Errorf("%s: config %+v, error %v", name, config, err)
		}
		rc := mutate.Extract(img)
		flat, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		if err := rc.Close(); err != nil {
			t.Fatal(err)
		}
		if len(c) > 0 && !bytes.Contains(flat, []byte("models/")) {
			t.Errorf("%s: the file system of the image has no models/", name)
		}
		// A layout is what other programs load.
		path, err := layout.Write(t.TempDir(), empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		if err := path.AppendImage(img); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Everything that an engine is changes its image.
func TestFormDependsOnTheEngine(t *testing.T) {
	t.Parallel()
	c := content{"model.onnx": "weights"}
	seen := map[registry.Digest]string{makeForm(t, c).Digest: "the engine"}
	for name, change := range map[string]func(*imageform.Engine, content){
		"another manifest":     func(e *imageform.Engine, _ content) { e.Digest = digest.FromString("another") },
		"another system":       func(e *imageform.Engine, _ content) { e.OS = "darwin" },
		"another architecture": func(e *imageform.Engine, _ content) { e.Arch = "amd64" },
		"another byte":         func(_ *imageform.Engine, c content) { c["model.onnx"] = "weighty" },
		"another name": func(e *imageform.Engine, c content) {
			delete(c, "model.onnx")
			c["model.bin"] = "weights"
			e.Files = c.files()
		},
		"one file more": func(e *imageform.Engine, c content) { c["a"] = ""; e.Files = c.files() },
	} {
		c := content{"model.onnx": "weights"}
		e := engineOf(c)
		change(&e, c)
		f, err := imageform.Make(t.Context(), e, c.open)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := seen[f.Digest]; ok {
			t.Errorf("%s has the same image as %s", name, other)
		}
		seen[f.Digest] = name
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	c := content{"model.onnx": "weights"}
	right := makeForm(t, c).Digest
	if err := imageform.Check(t.Context(), right, engineOf(c), c.open); err != nil {
		t.Error(err)
	}
	planted := content{"model.onnx": "WEIGHTS"}
	err := imageform.Check(t.Context(), makeForm(t, planted).Digest, engineOf(c), c.open)
	if !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), string(right)) || len(registry.Hints(err)) != 1 {
		t.Errorf("a planted image: error %v, want CodeTrust that names the right one", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := imageform.Check(ctx, right, engineOf(c), c.open); err == nil {
		t.Error("it goes on after ctx ended")
	}
}

// An image of any size is made in little memory.
func BenchmarkMake(b *testing.B) {
	const size = 256 << 20
	e := imageform.Engine{Digest: digest.FromString("engine"), OS: "linux", Arch: "amd64", Files: []artifact.File{{Path: "model.onnx", Size: size}}}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := imageform.Make(b.Context(), e, func(artifact.File) (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(zeros{}, size)), nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
