package remotecache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// save pushes the blobs of an entry, then its manifest, and sets its tag last.
func (s *Steps) save(ctx context.Context, about toolchain.About, o toolchain.Outcome) error {
	record, err := toolchain.MarshalStep(about, o)
	if err != nil {
		return err
	}
	config := describe(typeStep, record)
	text, err := evidence.NewStatement(PredicateStep, newStatement(o),
		evidence.StatementSubject{Name: tag(o.Key), Digest: evidence.NewDigestSet(config.Digest)})
	if err != nil {
		return err
	}
	bundle, err := s.Sign(ctx, evidence.RoleBuilder, text)
	if err != nil {
		return err
	}
	signature := describe(typeBundle, bundle)
	manifest, err := registry.CanonicalJSON(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: typeStep,
		Config: config, Layers: append([]ocispec.Descriptor{signature}, layers(o)...),
	})
	if err != nil {
		return err
	}
	for _, f := range o.Files {
		if err := s.push(ctx, ocispec.Descriptor{MediaType: typeFile, Digest: f.Digest, Size: f.Size},
			func() (io.ReadCloser, error) { return os.Open(f.Path) }); err != nil {
			return err
		}
	}
	entry := describe(ocispec.MediaTypeImageManifest, manifest)
	for _, d := range []struct {
		desc ocispec.Descriptor
		text []byte
	}{{config, record}, {signature, bundle}, {entry, manifest}} {
		if err := s.push(ctx, d.desc,
			func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(d.text)), nil }); err != nil {
			return err
		}
	}
	return s.Repository.Tag(ctx, entry, tag(o.Key))
}

func describe(mediaType string, text []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
}

// push pushes content unless it exists already.
func (s *Steps) push(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	there, err := s.Repository.Exists(ctx, desc)
	if err != nil || there {
		return err
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := s.Repository.Push(ctx, desc, in); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return err
	}
	return nil
}

// Save stores a step if Sign is set. A failure is not returned as an error: the step is done,
// and another machine will only have to do it again.
func (s *Steps) Save(ctx context.Context, about toolchain.About, outcome toolchain.Outcome) error {
	if s.Sign == nil || s.troubled() {
		return nil
	}
	err := s.save(ctx, about, outcome)
	if err != nil && ctx.Err() == nil {
		s.note(err)
	}
	return ctx.Err()
}
