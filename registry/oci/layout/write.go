package layout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Writer is a repository that collects content for an archive: manifests in memory, and the sources
// of blobs. Copy a release into it, then call [Writer.Write]. It is not safe for
// concurrent use.
type Writer struct {
	content   map[registry.Digest]held
	manifests map[registry.Digest]storage.Manifest
}

// held is content that can be opened.
type held struct {
	size int64
	open func() (io.ReadCloser, error)
}

// NewWriter returns an empty Writer.
func NewWriter() *Writer {
	return &Writer{content: make(map[registry.Digest]held), manifests: make(map[registry.Digest]storage.Manifest)}
}

// Push keeps small content: manifests and documents.
func (w *Writer) Push(_ context.Context, desc ocispec.Descriptor, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxIndex+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxIndex:
		return registry.Errorf(registry.CodeInvalid, "%s has more than %d bytes", desc.Digest, maxIndex)
	case desc.Digest.Validate() != nil || desc.Digest.Algorithm().FromBytes(data) != desc.Digest || int64(len(data)) != desc.Size:
		return registry.Errorf(registry.CodeDigest, "%s: other bytes came", desc.Digest)
	}
	if isManifest(desc.MediaType) {
		derived, err := artifact.DeriveManifest(desc.MediaType, data)
		if err != nil {
			return err
		}
		w.manifests[desc.Digest] = storage.Manifest{Digest: desc.Digest, MediaType: desc.MediaType, Size: desc.Size, Derived: derived}
	}
	w.content[desc.Digest] = held{desc.Size, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	return nil
}

// Send keeps how to open content, which is read when the archive is written.
func (w *Writer) Send(_ context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	w.content[desc.Digest] = held{desc.Size, open}
	return nil
}

// Fetch opens content. Errors: errdef.ErrNotFound.
func (w *Writer) Fetch(_ context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	c, ok := w.content[desc.Digest]
	if !ok || c.size != desc.Size {
		return nil, errdef.ErrNotFound
	}
	return c.open()
}

// Exists reports whether content was collected.
func (w *Writer) Exists(_ context.Context, desc ocispec.Descriptor) (bool, error) {
	c, ok := w.content[desc.Digest]
	return ok && c.size == desc.Size, nil
}

// Resolve finds a manifest by its digest. Errors: errdef.ErrNotFound.
func (w *Writer) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	m, ok := w.manifests[registry.Digest(reference)]
	if !ok {
		return ocispec.Descriptor{}, errdef.ErrNotFound
	}
	return describe(m), nil
}

// Tag fails: the tag of an archive is an argument of Write.
func (w *Writer) Tag(context.Context, ocispec.Descriptor, string) error { return errdef.ErrUnsupported }

// Predecessors lists the manifests with the node as subject, by digest.
func (w *Writer) Predecessors(_ context.Context, node ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return referrers(w.manifests, node.Digest), nil
}

// Write writes the archive. release is the manifest that tag names; index.json lists it first, and
// then all other manifests. Blobs are read once, in order of their digests, and compared with them.
func (w *Writer) Write(ctx context.Context, out io.Writer, release registry.Digest, tag string) error {
	index, err := w.index(release, tag)
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, data string }{{ocispec.ImageLayoutFile, versionFile}, {ocispec.ImageIndexFile, string(index)}} {
		data := []byte(f.data)
		if err := writeFile(ctx, out, f.name, held{int64(len(data)), func() (io.ReadCloser,
			error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}}); err != nil {
			return err
		}
	}
	digests := slices.SortedFunc(maps.Keys(w.content), func(a, b registry.Digest) int { return cmp.Compare(fileOf(a), fileOf(b)) })
	for _, d := range digests {
		if err := writeFile(ctx, out, fileOf(d), w.content[d]); err != nil {
			return registry.Errorf(registry.CodeOf(err), "save %s: %w", d, err)
		}
	}
	_, err = out.Write(make([]byte, 2*block))
	return err
}

// index is index.json.
func (w *Writer) index(release registry.Digest, tag string) ([]byte, error) {
	m, ok := w.manifests[release]
	if !ok {
		return nil, registry.Errorf(registry.CodeInternal, "save: the release %s was not collected", release)
	}
	root := describe(m)
	root.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{root}}
	for _, d := range slices.Sorted(maps.Keys(w.manifests)) {
		if d != release { // tools find only what is listed, by digest too
			index.Manifests = append(index.Manifests, describe(w.manifests[d]))
		}
	}
	return json.Marshal(index)
}

// writeFile writes a file with its header. Errors: CodeDigest if its size is another.
func writeFile(ctx context.Context, out io.Writer, name string, c held) error {
	head, err := header(name, c.size)
	if err != nil {
		return err
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	r, err := c.open()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(out, stopping(ctx, r))
	if err == nil && n != c.size {
		err = registry.Errorf(registry.CodeDigest, "%s has %d bytes, want %d", name, n, c.size)
	}
	if err == nil {
		_, err = out.Write(make([]byte, padding(c.size)))
	}
	return err
}

// readFunc is a reader.
type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// stopping returns a reader that fails when ctx ends.
func stopping(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		return r.Read(p)
	})
}

func describe(m storage.Manifest) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: m.Size, ArtifactType: m.Derived.ArtifactType}
}

func referrers(all map[registry.Digest]storage.Manifest, subject registry.Digest) []ocispec.Descriptor {
	var out []ocispec.Descriptor
	for _, d := range slices.Sorted(maps.Keys(all)) {
		if m := all[d]; m.Derived.Subject == subject {
			desc := describe(m)
			desc.Annotations = m.Derived.Annotations
			out = append(out, desc)
		}
	}
	return out
}

func isManifest(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageManifest || mediaType == ocispec.MediaTypeImageIndex
}
