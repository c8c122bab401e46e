package distribution

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Media types whose references are checked. Others are stored unchecked.
const (
	typeImage       = "application/vnd.oci.image.manifest.v1+json"
	typeIndex       = "application/vnd.oci.image.index.v1+json"
	typeDockerImage = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerList  = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// mediaTypeGrammar is type/subtype of RFC 6838, section 4.2.
var mediaTypeGrammar = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$`)
})

// descriptor names content. It has only the fields that are checked.
type descriptor struct {
	MediaType string          `json:"mediaType"`
	Digest    registry.Digest `json:"digest"`
	Size      int64           `json:"size"`
	URLs      []string        `json:"urls"`
}

// elsewhere reports whether the content need not be in this registry.
func (d descriptor) elsewhere() bool {
	return len(d.URLs) > 0 || strings.Contains(d.MediaType, ".nondistributable.") ||
		strings.Contains(d.MediaType, ".foreign.")
}

// document has the parts of a manifest or index that name other content.
type document struct {
	Config    *descriptor  `json:"config"`
	Layers    []descriptor `json:"layers"`
	Manifests []descriptor `json:"manifests"`
}

// checkManifest returns the record of a received manifest, without its digest.
func checkManifest(
	ctx context.Context, h *handler,
	repository, contentType string,
	raw []byte,
) (storage.Manifest, error) {
	mediaType, err := mediaTypeOf(contentType, raw)
	if err != nil {
		return storage.Manifest{}, err
	}
	derived, err := artifact.DeriveManifest(mediaType, raw)
	if err != nil {
		return storage.Manifest{}, err
	}
	if err := checkReferences(ctx, h, repository, mediaType, raw); err != nil {
		return storage.Manifest{}, err
	}
	return storage.Manifest{MediaType: mediaType, Size: int64(len(raw)), Derived: derived}, nil
}

// mediaTypeOf returns the media type of a manifest. Content-Type, without parameters, and the
// mediaType of the document must agree; either one is enough.
func mediaTypeOf(contentType string, raw []byte) (string, error) {
	var said struct {
		MediaType string `json:"mediaType"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return "", problemf(400, codeManifestInvalid, "the manifest is not a JSON object: %w", err)
	}
	contentType, _, _ = strings.Cut(contentType, ";")
	contentType = strings.TrimSpace(contentType)
	if contentType != "" && said.MediaType != "" && contentType != said.MediaType {
		return "", problemf(400, codeManifestInvalid,
			"Content-Type is %q and the manifest's mediaType %q: want the same", contentType, said.MediaType)
	}
	mediaType := cmp.Or(contentType, said.MediaType)
	if !mediaTypeGrammar().MatchString(mediaType) {
		return "", problemf(400, codeManifestInvalid,
			"media type %q: want Content-Type or mediaType to be type/subtype", mediaType)
	}
	return mediaType, nil
}

// checkReferences checks that everything a manifest needs exists. The subject may come later.
func checkReferences(ctx context.Context, h *handler, repository, mediaType string, raw []byte) error {
	var isIndex bool
	switch mediaType {
	case typeIndex, typeDockerList:
		isIndex = true
	case typeImage, typeDockerImage:
	default:
		return nil
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return problemf(400, codeManifestInvalid, "not a %s: %w", mediaType, err)
	}
	switch {
	case isIndex && (doc.Config != nil || doc.Layers != nil), !isIndex && doc.Manifests != nil:
		// Two readers could understand such a document in two ways.
		return problemf(400, codeManifestInvalid,
			"not a %s: an image has config and layers, an index has manifests; want only one of the two", mediaType)
	case !isIndex && doc.Config == nil:
		return problemf(400, codeManifestInvalid, "not a %s: config is missing", mediaType)
	}
	needed := append(doc.Layers, doc.Manifests...)
	if doc.Config != nil {
		needed = append(needed, *doc.Config)
	}
	seen := make(map[descriptorKey]bool)
	for _, d := range needed {
		key := descriptorKey{d.Digest, d.Size}
		if seen[key] || d.elsewhere() {
			continue
		}
		seen[key] = true
		if err := checkReference(ctx, h, repository, d, isIndex); err != nil {
			return err
		}
	}
	return nil
}

// descriptorKey has the checked fields of a descriptor.
type descriptorKey struct {
	digest registry.Digest
	size   int64
}

// checkReference checks one blob or one entry of an index.
func checkReference(ctx context.Context, h *handler, repository string, d descriptor, inIndex bool) error {
	if err := registry.ValidDigest(d.Digest); err != nil {
		return problemf(400, codeManifestInvalid, "digest %q in the manifest: %w", d.Digest, err)
	}
	size, err := sizeOf(ctx, h, repository, d.Digest, inIndex)
	if registry.HasCode(err, registry.CodeNotFound) {
		return problemf(400, codeManifestBlobUnknown,
			"the manifest refers to %s, which is not in %s: push that first", d.Digest, repository)
	}
	if err == nil && size != d.Size {
		return problemf(400, codeManifestInvalid, "the manifest states %[2]d bytes for %[1]s, but it has %[3]d",
			d.Digest, d.Size, size)
	}
	return err
}

// sizeOf returns the size of content of the repository. An entry of an index is a manifest or,
// since an index may name any content, a blob.
func sizeOf(ctx context.Context, h *handler, repository string, d registry.Digest, inIndex bool) (int64, error) {
	if inIndex {
		m, err := h.Refs.Manifest(ctx, repository, d)
		if !registry.HasCode(err, registry.CodeNotFound) {
			return m.Size, err
		}
	}
	return h.Refs.Blob(ctx, repository, d)
}
