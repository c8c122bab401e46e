package imageform

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Media types of the image form. Source: opencontainers/image-spec 1.1, media-types.md.
const (
	TypeManifest = "application/vnd.oci.image.manifest.v1+json"
	TypeConfig   = "application/vnd.oci.image.config.v1+json"
	TypeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// KeyEngine is the annotation of an image with the digest of its engine.
const KeyEngine = "dev.mlpromote.engine"

// Engine has all that the image form of an engine depends on.
type Engine struct {
	Digest registry.Digest // of its manifest
	OS     string          // of its target
	Arch   string          // of its target's processor
	Files  []artifact.File
}

// Of takes from an engine and its files all that its image form depends on.
func Of(e artifact.Engine, files []artifact.File) Engine {
	return Engine{Digest: e.Digest, OS: e.Target.OS, Arch: e.Target.CPU.Arch, Files: files}
}

// Form is the image form of an engine.
type Form struct {
	Digest   registry.Digest // of the manifest
	Manifest []byte
	Config   Blob
	Layer    Blob  // without Data: Archive has its bytes
	Archive  Layer // the bytes of the layer
}

// Blob is a config or a layer.
type Blob struct {
	Digest registry.Digest
	Size   int64
	Data   []byte
}

// config is an OCI image config. Source: opencontainers/image-spec 1.1, config.md. It has neither times nor a history,
// and no command, since nothing in the image can be run.
type config struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	RootFS       rootFS `json:"rootfs"`
}

type rootFS struct {
	Type    string            `json:"type"`
	DiffIDs []registry.Digest `json:"diff_ids"` // of the layers before compression
}

// manifest is an OCI image manifest. Source: opencontainers/image-spec 1.1, manifest.md. It has no artifact type:
// runtimes take an image only without one.
type manifest struct {
	Schema      int               `json:"schemaVersion"`
	MediaType   string            `json:"mediaType"`
	Config      descriptor        `json:"config"`
	Layers      []descriptor      `json:"layers"`
	Annotations map[string]string `json:"annotations"`
}

type descriptor struct {
	MediaType string          `json:"mediaType"`
	Digest    registry.Digest `json:"digest"`
	Size      int64           `json:"size"`
}

// Make returns the image form of an engine. It reads every file once, in bounded memory. Errors: CodeInvalid for files
// that an image cannot hold; errors of open and of its files.
func Make(ctx context.Context, e Engine, open Open) (Form, error) {
	layer, err := NewLayer(e.Files)
	if err != nil {
		return Form{}, err
	}
	content := layer.Open(open)
	defer content.Close()
	sum := sha256.New()
	buffer := make([]byte, readAtOnce)
	for {
		n, err := content.Read(buffer)
		sum.Write(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return Form{}, registry.Errorf(registry.CodeOf(err), "image form of engine %s: %w", e.Digest, err)
		}
	}
	return fromLayer(e, layer, digest.NewDigest(digest.SHA256, sum))
}

// readAtOnce is how many bytes of a layer are read at once: hashing them takes longer than the system call.
const readAtOnce = 1 << 20

// fromLayer makes the documents of an image whose layer is known.
func fromLayer(e Engine, layer Layer, d registry.Digest) (Form, error) {
	f := Form{Layer: Blob{Digest: d, Size: layer.Size()}, Archive: layer}
	var err error
	f.Config.Data, err = registry.CanonicalJSON(config{e.Arch, e.OS, rootFS{"layers", []registry.Digest{d}}})
	if err != nil {
		return Form{}, err
	}
	f.Config.Digest, f.Config.Size = digest.FromBytes(f.Config.Data), int64(len(f.Config.Data))
	f.Manifest, err = registry.CanonicalJSON(manifest{
		Schema: 2, MediaType: TypeManifest,
		Config:      descriptor{TypeConfig, f.Config.Digest, f.Config.Size},
		Layers:      []descriptor{{TypeLayer, f.Layer.Digest, f.Layer.Size}},
		Annotations: map[string]string{"dev.mlpromote.format": "1", "dev.mlpromote.role": string(artifact.PartImage), KeyEngine: string(e.Digest)},
	})
	f.Digest = digest.FromBytes(f.Manifest)
	return f, err
}

// Check recomputes the image form of an engine and compares it with the digest of an image. Errors: CodeTrust if they
// differ; errors of [Make].
func Check(ctx context.Context, image registry.Digest, e Engine, open Open) error {
	f, err := Make(ctx, e, open)
	if err != nil {
		return err
	}
	if f.Digest != image {
		return registry.WithHint(registry.Errorf(registry.CodeTrust,
			"image %s is not the image form of engine %s, whose files make %s: nodes would mount other bytes than were verified", image, e.Digest, f.Digest),
			"build the release again, and find out who stored the image")
	}
	return nil
}
