package artifact

import (
	"bytes"
	"encoding/json"

	"mlpromote.dev/mlpromote/registry"
)

// Media types of indexes. An index has an artifact type only if it states one.
const (
	typeOCIIndex   = "application/vnd.oci.image.index.v1+json"
	typeDockerList = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// DeriveManifest reads the derived fields of a record from the bytes of a manifest or index. It
// accepts any document that registries accept. The artifact type of a manifest without
// artifactType is the media type of its config; an index has no such fallback. Errors:
// CodeInvalid.
//
// Source:
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-referrers.
func DeriveManifest(mediaType string, raw []byte) (Derived, error) {
	type descriptor struct {
		MediaType string          `json:"mediaType"`
		Digest    registry.Digest `json:"digest"`
	}
	var document struct {
		ArtifactType string            `json:"artifactType"`
		Config       *descriptor       `json:"config"`
		Subject      *descriptor       `json:"subject"`
		Annotations  map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return Derived{}, registry.Errorf(registry.CodeInvalid, "not a %s: %w", mediaType, err)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return Derived{}, registry.Errorf(registry.CodeInvalid, "not a %s: want a JSON object", mediaType)
	}
	derived := Derived{ArtifactType: document.ArtifactType, Annotations: document.Annotations}
	isIndex := mediaType == typeOCIIndex || mediaType == typeDockerList
	if derived.ArtifactType == "" && document.Config != nil && !isIndex {
		derived.ArtifactType = document.Config.MediaType
	}
	if document.Subject != nil {
		derived.Subject = document.Subject.Digest
		if err := derived.Subject.Validate(); err != nil {
			return Derived{}, registry.Errorf(registry.CodeInvalid, "subject %q: %w", derived.Subject, err)
		}
	}
	return derived, nil
}

// Derived has the fields of a Manifest record that repeat the manifest's bytes for queries.
// Reindex recomputes them.
type Derived struct {
	ArtifactType string          // artifactType, else config.mediaType for a manifest
	Subject      registry.Digest // the manifest that it refers to; usually empty
	Annotations  map[string]string
}
