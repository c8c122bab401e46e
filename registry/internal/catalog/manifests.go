package catalog

import (
	"encoding/json"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ManifestRow is the row of a manifest with its derived columns, which may be empty.
type ManifestRow struct {
	Repository   string
	Digest       string
	MediaType    string
	Size         int64
	Pusher       string
	ArtifactType string
	Subject      string
	Annotations  string // JSON
}

// Manifest returns the record of a row. Errors: CodeInternal.
func (row ManifestRow) Manifest() (storage.Manifest, error) {
	m := storage.Manifest{
		Digest: registry.Digest(row.Digest), MediaType: row.MediaType, Size: row.Size, Pusher: row.Pusher,
		Derived: artifact.Derived{ArtifactType: row.ArtifactType, Subject: registry.Digest(row.Subject)},
	}
	if row.Annotations == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(row.Annotations), &m.Derived.Annotations); err != nil {
		return storage.Manifest{}, registry.Errorf(registry.CodeInternal,
			"annotations of manifest %s in %s are damaged: run mlpromote reindex to rebuild them: %w",
			row.Digest, row.Repository, err)
	}
	if len(m.Derived.Annotations) == 0 {
		m.Derived.Annotations = nil
	}
	return m, nil
}

// RepositoryManifest is Manifest with the repository.
func (row ManifestRow) RepositoryManifest() (storage.RepositoryManifest, error) {
	m, err := row.Manifest()
	return storage.RepositoryManifest{Repository: row.Repository, Manifest: m}, err
}

// EncodeAnnotations returns the column for the annotations of m.
func EncodeAnnotations(m storage.Manifest) (string, error) {
	annotations, err := json.Marshal(m.Derived.Annotations)
	if err != nil {
		return "", registry.Errorf(registry.CodeInternal, "annotations of manifest %s: %w", m.Digest, err)
	}
	return string(annotations), nil
}

// TagSet returns an error if a tag was not set because its manifest is not recorded. It takes
// the results of the change.
func TagSet(repository, tag string, d registry.Digest, rows int64, err error) error {
	if err == nil && rows == 0 {
		return registry.Errorf(registry.CodeNotFound,
			"tag %s in %s: manifest %s is not recorded there; put the manifest first", tag, repository, d)
	}
	return err
}
