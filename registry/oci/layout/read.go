package layout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Layout is an open archive: a repository that can only be read. It is safe for concurrent use if
// its reader is.
type Layout struct {
	r         io.ReaderAt
	files     map[string]span
	manifests map[registry.Digest]storage.Manifest
	release   registry.Digest
	tag       string
}

// Open reads an archive of size bytes from beginning to end. It has the exact form that
// [Writer.Write] gives it, every blob has its digest, and everything in it is named by index.json. The bytes must
// not change while the Layout is used; readers of its content compare digests again. Errors:
// CodeTrust and CodeDigest, with the name of the object.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*Layout, error) {
	files, err := scan(r, size)
	if err != nil {
		return nil, err
	}
	l := &Layout{r: r, files: files, manifests: make(map[registry.Digest]storage.Manifest)}
	if len(files) < 2 {
		return nil, altered("it has no %s and %s", ocispec.ImageLayoutFile, ocispec.ImageIndexFile)
	}
	if data, err := l.read(ocispec.ImageLayoutFile); err != nil || string(data) != versionFile {
		return nil, errors.Join(err, altered("%s is not %s", ocispec.ImageLayoutFile, versionFile))
	}
	for name := range files {
		if err := l.check(ctx, name); err != nil {
			return nil, err
		}
	}
	return l, l.readIndex()
}

// Release returns the digest and the tag of the release.
func (l *Layout) Release() (registry.Digest, string) { return l.release, l.tag }

// Referrers returns the digests of the manifests with a subject and of an artifact type.
func (l *Layout) Referrers(subject registry.Digest, artifactType string) []ocispec.Descriptor {
	var out []ocispec.Descriptor
	for _, desc := range referrers(l.manifests, subject) {
		if desc.ArtifactType == artifactType {
			out = append(out, desc)
		}
	}
	return out
}

// Manifests returns the digests of all manifests and indexes, in order.
func (l *Layout) Manifests() []registry.Digest { return slices.Sorted(maps.Keys(l.manifests)) }

// Manifest returns the bytes of a manifest or of other small content. Errors: CodeTrust.
func (l *Layout) Manifest(d registry.Digest) ([]byte, error) { return l.read(fileOf(d)) }

// check compares the bytes of a blob with its digest.
func (l *Layout) check(ctx context.Context, name string) error {
	d, ok := digestOf(name)
	if !ok {
		return nil
	}
	sum := d.Algorithm().Digester()
	if _, err := io.Copy(sum.Hash(), stopping(ctx, l.open(l.files[name]))); err != nil {
		return fmt.Errorf("read %s of the saved release: %w", name, err)
	}
	if sum.Digest() != d {
		return registry.Errorf(registry.CodeDigest, "%s of the saved release is damaged: its bytes are %s: copy or save it again", name, sum.Digest())
	}
	return nil
}

func (l *Layout) open(s span) *io.SectionReader { return io.NewSectionReader(l.r, s.at, s.size) }

// read returns the bytes of a small file.
func (l *Layout) read(name string) ([]byte, error) {
	s, ok := l.files[name]
	if !ok || s.size > maxIndex {
		return nil, altered("%s is missing or longer than %d bytes", name, maxIndex)
	}
	return io.ReadAll(l.open(s))
}

// readIndex reads index.json and what it names. Nothing may be left over.
func (l *Layout) readIndex() error {
	raw, err := l.read(ocispec.ImageIndexFile)
	if err != nil {
		return err
	}
	var index ocispec.Index
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&index); err != nil || len(index.Manifests) == 0 {
		return altered("%s is not an index with a release: %v", ocispec.ImageIndexFile, err)
	}
	l.release, l.tag = index.Manifests[0].Digest, index.Manifests[0].Annotations[ocispec.AnnotationRefName]
	if !registry.ValidTag(l.tag) {
		return altered("its release has the tag %q", l.tag)
	}
	w := &Writer{manifests: l.manifests}
	seen := map[string]bool{ocispec.ImageLayoutFile: true, ocispec.ImageIndexFile: true}
	for i, desc := range index.Manifests {
		inRelease := seen[fileOf(desc.Digest)]
		if err := l.visit(desc, seen, 0); err != nil {
			return err
		}
		if i > 0 && !inRelease && l.manifests[desc.Digest].Derived.Subject == "" {
			return altered("manifest %s neither belongs to the release nor is about something in it", desc.Digest)
		}
	}
	for name := range l.files {
		if !seen[name] {
			return altered("no manifest names %s", name)
		}
	}
	if again, err := w.index(l.release, l.tag); err != nil || !bytes.Equal(again, raw) {
		return altered("%s is not the index of its content", ocispec.ImageIndexFile)
	}
	return nil
}

// maxDepth is how deep manifests name one another: an index, its manifests, and their blobs.
const maxDepth = 2

// visit reads a manifest with all that it names.
func (l *Layout) visit(desc ocispec.Descriptor, seen map[string]bool, depth int) error {
	name := fileOf(desc.Digest)
	s, ok := l.files[name]
	if !ok || s.size != desc.Size {
		return altered("%s of %d bytes is missing", desc.Digest, desc.Size)
	}
	if _, done := l.manifests[desc.Digest]; done || seen[name] && !isManifest(desc.MediaType) {
		return nil
	}
	seen[name] = true
	if !isManifest(desc.MediaType) || depth >= maxDepth {
		return nil
	}
	raw, err := l.read(name)
	if err != nil {
		return err
	}
	derived, err := artifact.DeriveManifest(desc.MediaType, raw)
	if err != nil {
		return altered("manifest %s: %v", desc.Digest, err)
	}
	l.manifests[desc.Digest] = storage.Manifest{Digest: desc.Digest, MediaType: desc.MediaType, Size: desc.Size, Derived: derived}
	var of struct {
		Config    *ocispec.Descriptor  `json:"config"`
		Layers    []ocispec.Descriptor `json:"layers"`
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return altered("manifest %s: %v", desc.Digest, err)
	}
	named := append(of.Layers, of.Manifests...)
	if of.Config != nil {
		named = append(named, *of.Config)
	}
	for _, n := range named {
		if err := l.visit(n, seen, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// OpenBlob opens content at any place, for inspections.
func (l *Layout) OpenBlob(_ context.Context, d registry.Digest) (storage.Blob, int64, error) {
	s, ok := l.files[fileOf(d)]
	if !ok {
		return nil, 0, registry.Errorf(registry.CodeNotFound, "%s is not in the saved release", d)
	}
	return blob{l.open(s)}, s.size, nil
}

type blob struct{ *io.SectionReader }

func (blob) Close() error { return nil }

// Fetch opens content. Errors: errdef.ErrNotFound.
func (l *Layout) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	b, size, err := l.OpenBlob(ctx, desc.Digest)
	if err != nil || size != desc.Size {
		return nil, errdef.ErrNotFound
	}
	return b, nil
}

// Exists reports whether content is in the archive.
func (l *Layout) Exists(_ context.Context, desc ocispec.Descriptor) (bool, error) {
	s, ok := l.files[fileOf(desc.Digest)]
	return ok && s.size == desc.Size, nil
}

// Resolve finds a manifest by its digest, or the release by its tag. Errors: errdef.ErrNotFound.
func (l *Layout) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	d := digest.Digest(reference)
	if reference == l.tag {
		d = l.release
	}
	m, ok := l.manifests[d]
	if !ok {
		return ocispec.Descriptor{}, errdef.ErrNotFound
	}
	return describe(m), nil
}

// Predecessors lists the manifests with the node as subject, by digest.
func (l *Layout) Predecessors(_ context.Context, node ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return referrers(l.manifests, node.Digest), nil
}

// Push fails: an archive is not changed.
func (l *Layout) Push(context.Context, ocispec.Descriptor, io.Reader) error {
	return errdef.ErrUnsupported
}

// Tag fails: an archive is not changed.
func (l *Layout) Tag(context.Context, ocispec.Descriptor, string) error { return errdef.ErrUnsupported }
