package oci

import (
	"context"
	"maps"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
)

// tree is an index of this format with all its parts, read and checked.
type tree struct {
	desc  ocispec.Descriptor
	raw   []byte
	index ocispec.Index
	parts []part // in canonical order
}

// object is content of a tree other than its manifests, with a name for messages.
type object struct {
	what string
	desc ocispec.Descriptor
}

// tree reads an index and the manifests in it. what is "release" or "sources".
// Errors: CodeNotFound, CodeInvalid, CodeTrust, CodeDigest.
func (r repository) tree(ctx context.Context, what, artifactType, tagOrDigest string) (tree, error) {
	desc, err := r.resolve(ctx, what, tagOrDigest)
	if err != nil {
		return tree{}, err
	}
	if desc.MediaType != ocispec.MediaTypeImageIndex {
		return tree{}, registry.Errorf(registry.CodeInvalid,
			"%s: %s is not a %s: it is a %q, not an image index", r.name, tagOrDigest, what, desc.MediaType)
	}
	t := tree{desc: ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}}
	if t.raw, err = r.read(ctx, what+" index", t.desc); err != nil {
		return tree{}, err
	}
	if t.index, err = readIndex(t.raw, artifactType); err != nil {
		return tree{}, r.about(what, desc.Digest, err)
	}
	for _, entry := range t.index.Manifests {
		p, err := r.part(ctx, entry)
		if err != nil {
			return tree{}, err
		}
		if err := sameAsEntry(p, entry); err != nil {
			return tree{}, r.about(what, desc.Digest, err)
		}
		t.parts = append(t.parts, p)
	}
	slices.SortFunc(t.parts, canonicalOrder)
	return t, nil
}

// part reads a manifest of this format by descriptor.
func (r repository) part(ctx context.Context, desc ocispec.Descriptor) (part, error) {
	what := "manifest"
	if role := desc.Annotations[keyRole]; role != "" {
		what = role + " manifest"
	}
	raw, err := r.read(ctx, what, desc)
	if err != nil {
		return part{}, err
	}
	p, err := readPart(raw)
	if err != nil {
		return part{}, r.about(what, desc.Digest, err)
	}
	return p, nil
}

// about adds to an error which document it is about.
func (r repository) about(what string, d registry.Digest, err error) error {
	return registry.Errorf(registry.CodeOf(err), "%s: %s %s: %w", r.name, what, d, err)
}

// sameAsEntry compares a manifest with its entry in the index. A node chooses an engine by the
// index, while the signature of the engine covers the manifest.
func sameAsEntry(p part, entry ocispec.Descriptor) error {
	if p.desc.ArtifactType != entry.ArtifactType {
		return registry.Errorf(registry.CodeTrust,
			"%s %s: its artifact type is %q in the index and %q in its manifest", p.label(), p.desc.Digest, entry.ArtifactType, p.desc.ArtifactType)
	}
	said, is := ours(entry.Annotations), ours(p.manifest.Annotations)
	keys := maps.Clone(said)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if said[key] != is[key] {
			return registry.Errorf(registry.CodeTrust,
				"%s %s: annotation %s is %q in the index and %q in its manifest", p.label(), p.desc.Digest, key, said[key], is[key])
		}
		_, inIndex := said[key]
		if _, inManifest := is[key]; inIndex != inManifest {
			return registry.Errorf(registry.CodeTrust,
				"%s %s: annotation %s is empty in one of index and manifest and absent in the other", p.label(), p.desc.Digest, key)
		}
	}
	return nil
}

// blobs lists configs and files, each once.
func (t tree) blobs() *blobSet {
	var out blobSet
	for _, p := range t.parts {
		out.add("config of "+p.label(), p.manifest.Config)
		for i, layer := range p.manifest.Layers {
			out.add(p.layer(i), layer)
		}
	}
	return &out
}

// blobSet is a list of objects, each once. The zero blobSet is empty.
type blobSet struct {
	objects []object
	seen    map[sized]bool
}

// sized identifies the bytes that a descriptor names.
type sized struct {
	digest registry.Digest
	size   int64
}

func (p *blobSet) add(what string, desc ocispec.Descriptor) {
	key := sized{desc.Digest, desc.Size}
	if p.seen[key] {
		return
	}
	if p.seen == nil {
		p.seen = make(map[sized]bool)
	}
	p.seen[key] = true
	p.objects = append(p.objects, object{what, desc})
}

// manifests lists the parts' manifests and, last, the index: the order in which they
// must be stored.
func (t tree) manifests() []document {
	var out []document
	for _, p := range t.parts {
		out = append(out, document{object{p.label(), p.desc}, p.raw})
	}
	return append(out, document{object{"index", t.desc}, t.raw})
}

// document is a manifest or index with its bytes.
type document struct {
	object
	raw []byte
}
