package oci

import (
	"bytes"
	"context"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Local returns a repository over the storage ports: bytes are in blobs, names in refs. Only
// content that belongs to the repository can be read from it. The bytes of manifests are in
// blobs too, but their record decides to which repository they belong. The repository is a
// [Mounter] and lists referrers. Its errors have codes of package registry, and are
// errdef.ErrNotFound where oras-go expects that.
func Local(blobs storage.Blobs, refs storage.RepositoryRecords, repository string) Repository {
	return &local{blobs: blobs, refs: refs, name: repository}
}

type local struct {
	blobs storage.Blobs
	refs  storage.RepositoryRecords
	name  string
}

// Fetch opens content of the repository. It does not hash; the caller must.
func (l *local) Fetch(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, error) {
	blob, _, err := l.find(ctx, target)
	return blob, err
}

// find opens content that belongs to the repository and has its recorded size. Another size is
// an error of the caller. Errors: CodeNotFound.
func (l *local) find(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, int64, error) {
	stored, err := l.size(ctx, target)
	if err != nil {
		return nil, 0, notFound(err)
	}
	if stored != target.Size {
		return nil, 0, notFound(registry.Errorf(registry.CodeNotFound,
			"%s has %d bytes in %s and not %d", target.Digest, stored, l.name, target.Size))
	}
	blob, size, err := l.blobs.Open(ctx, target.Digest)
	if err != nil {
		return nil, 0, notFound(err)
	}
	return blob, size, nil
}

// size returns the recorded size of content of the repository.
func (l *local) size(ctx context.Context, target ocispec.Descriptor) (int64, error) {
	if isManifest(target.MediaType) {
		m, err := l.refs.Manifest(ctx, l.name, target.Digest)
		return m.Size, err
	}
	return l.refs.Blob(ctx, l.name, target.Digest)
}

// Exists reports whether content belongs to the repository and is stored completely.
func (l *local) Exists(ctx context.Context, target ocispec.Descriptor) (bool, error) {
	rc, size, err := l.find(ctx, target)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return size == target.Size, rc.Close()
}

// Push stores content: a blob, or a manifest with its record. Errors: CodeDigest; CodeInvalid
// for an invalid or too large manifest.
func (l *local) Push(ctx context.Context, expected ocispec.Descriptor, from io.Reader) error {
	if err := checkDescriptor(expected); err != nil {
		return err
	}
	if isManifest(expected.MediaType) {
		return l.pushManifest(ctx, expected, from)
	}
	if err := l.blobs.Put(ctx, expected.Digest, expected.Size, from); err != nil {
		return err
	}
	return l.refs.AddBlob(ctx, l.name, expected.Digest, expected.Size)
}

func (l *local) pushManifest(ctx context.Context, expected ocispec.Descriptor, from io.Reader) error {
	if expected.Size > maxDocument {
		return registry.Errorf(registry.CodeInvalid,
			"manifest %s has %d bytes: at most %d are stored", expected.Digest, expected.Size, maxDocument)
	}
	raw, err := io.ReadAll(io.LimitReader(from, expected.Size+1))
	if err != nil {
		return err
	}
	record, err := l.Stage(ctx, expected, raw)
	if err != nil {
		return err
	}
	return l.refs.PutManifest(ctx, l.name, record)
}

// Stage stores the bytes of a manifest without its record. Errors: CodeDigest; CodeInvalid for
// an invalid manifest.
func (l *local) Stage(ctx context.Context, desc ocispec.Descriptor, raw []byte) (storage.Manifest, error) {
	if got := desc.Digest.Algorithm().FromBytes(raw); got != desc.Digest {
		return storage.Manifest{}, registry.Errorf(registry.CodeDigest, "manifest %s: the bytes that came are %s", desc.Digest, got)
	}
	derived, err := artifact.DeriveManifest(desc.MediaType, raw)
	if err != nil {
		return storage.Manifest{}, err
	}
	if err := l.blobs.Put(ctx, desc.Digest, desc.Size, bytes.NewReader(raw)); err != nil {
		return storage.Manifest{}, err
	}
	return storage.Manifest{Digest: desc.Digest, MediaType: desc.MediaType, Size: desc.Size, Derived: derived}, nil
}

// Resolve returns the manifest to which a tag or digest refers. Errors: CodeNotFound.
func (l *local) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	d := digest.Digest(reference)
	if d.Validate() != nil {
		var err error
		if d, err = l.refs.Tag(ctx, l.name, reference); err != nil {
			return ocispec.Descriptor{}, notFound(err)
		}
	}
	m, err := l.refs.Manifest(ctx, l.name, d)
	if err != nil {
		return ocispec.Descriptor{}, notFound(err)
	}
	return ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: m.Size}, nil
}

// Tag sets a tag to a manifest of the repository. Errors: CodeInvalid for an invalid tag;
// CodeNotFound without the manifest.
func (l *local) Tag(ctx context.Context, desc ocispec.Descriptor, reference string) error {
	if !registry.ValidTag(reference) {
		return registry.Errorf(registry.CodeInvalid, "tag %q: want up to 128 letters, digits, '.', '_' or '-'", reference)
	}
	if _, err := l.refs.Manifest(ctx, l.name, desc.Digest); err != nil {
		return notFound(err)
	}
	return l.refs.SetTag(ctx, l.name, reference, desc.Digest)
}

// Predecessors lists the manifests with the node as subject, by digest.
func (l *local) Predecessors(ctx context.Context, node ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	var out []ocispec.Descriptor
	err := l.Referrers(ctx, node, "", func(page []ocispec.Descriptor) error {
		out = append(out, page...)
		return nil
	})
	return out, err
}

// Referrers lists the manifests whose subject is desc, as oras-go's
// registry.ReferrerLister does. An empty artifactType means all.
func (l *local) Referrers(ctx context.Context, desc ocispec.Descriptor, artifactType string, fn func([]ocispec.Descriptor) error) error {
	for after := registry.Digest(""); ; {
		manifests, err := l.refs.Referrers(ctx, l.name, desc.Digest, artifactType, after)
		if err != nil || len(manifests) == 0 {
			return err
		}
		page := make([]ocispec.Descriptor, len(manifests))
		for i, m := range manifests {
			page[i] = ocispec.Descriptor{
				MediaType: m.MediaType, Digest: m.Digest, Size: m.Size,
				ArtifactType: m.Derived.ArtifactType, Annotations: m.Derived.Annotations,
			}
		}
		if err := fn(page); err != nil {
			return err
		}
		after = manifests[len(manifests)-1].Digest
	}
}

// Mount makes a blob of another repository also belong to this one, without copying bytes. If
// the other repository does not have the blob, Mount stores the bytes from getContent; without
// getContent the error is CodeNotFound.
func (l *local) Mount(ctx context.Context, desc ocispec.Descriptor, fromRepo string, getContent func() (io.ReadCloser, error)) error {
	there, err := (&local{l.blobs, l.refs, fromRepo}).Exists(ctx, desc)
	if err != nil {
		return err
	}
	if there {
		return l.refs.AddBlob(ctx, l.name, desc.Digest, desc.Size)
	}
	if getContent == nil {
		return notFound(registry.Errorf(registry.CodeNotFound, "blob %s of %d bytes is not in %s", desc.Digest, desc.Size, fromRepo))
	}
	rc, err := getContent()
	if err != nil {
		return err
	}
	defer rc.Close()
	return l.Push(ctx, desc, rc)
}

// notFound makes an error with CodeNotFound also an errdef.ErrNotFound. Other errors stay as
// they are.
func notFound(err error) error {
	if !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	return registry.Errorf(registry.CodeNotFound, "%w: %w", err, errdef.ErrNotFound)
}

// isManifest reports whether a media type is that of a manifest or index.
func isManifest(mediaType string) bool {
	switch mediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, typeDockerManifest, typeDockerList:
		return true
	}
	return false
}
