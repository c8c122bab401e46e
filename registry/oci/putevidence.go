package oci

import (
	"context"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// PutEvidence stores a bundle for every subject, as cosign v3 does: the bundle is a blob, and
// each subject gets a manifest that refers to it. Per-case figures are the config of that manifest: whatever
// copies, keeps or checks evidence does so with them, and the bundle stays its only layer. The predicate type of the
// manifest is the signed statement's. Subjects are processed one after the other, and each manifest is looked up among
// the referrers. Errors: CodeInvalid for an invalid or too large bundle, or one with another predicate type than
// stated; CodeNotFound without a subject; CodeConflict if the repository repeatedly loses a referrer.
func (s *Store) PutEvidence(ctx context.Context, name string, b evidence.Bundle, subjects []artifact.Subject) ([]registry.Digest, error) {
	repo, manifests, err := s.putBundle(ctx, name, b, subjects)
	if err != nil {
		return nil, err
	}
	var digests []registry.Digest
	for _, m := range manifests {
		err := repo.attach(ctx, m)
		if err == nil || registry.HasCode(err, registry.CodeConflict) {
			digests = append(digests, m.desc.Digest)
		}
		if err != nil {
			return digests, err
		}
	}
	return digests, nil
}

// StageEvidence stores what PutEvidence stores, but leaves out the records of the manifests if
// the repository is a [Stager]. Errors: as PutEvidence.
func (s *Store) StageEvidence(ctx context.Context, name string, b evidence.Bundle, subjects []artifact.Subject) (storage.StagedEvidence, error) {
	repo, manifests, err := s.putBundle(ctx, name, b, subjects)
	if err != nil {
		return storage.StagedEvidence{}, err
	}
	stager, isStager := repo.Repository.(Stager)
	var staged storage.StagedEvidence
	for _, m := range manifests {
		if isStager {
			record, err := stager.Stage(ctx, m.desc, m.raw)
			if err != nil {
				return storage.StagedEvidence{}, err
			}
			staged.Records = append(staged.Records, storage.RepositoryManifest{Repository: name, Manifest: record})
		} else if err := repo.attach(ctx, m); err != nil {
			return storage.StagedEvidence{}, err
		}
		staged.Digests, staged.Manifests = append(staged.Digests, m.desc.Digest), append(staged.Manifests, m.raw)
	}
	return staged, nil
}

// putBundle stores a bundle, and returns the manifests that attach it to the subjects.
func (s *Store) putBundle(ctx context.Context, name string, b evidence.Bundle, subjects []artifact.Subject) (repository, []attached, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return repository{}, nil, err
	}
	predicateType, err := readBundle(b)
	if err != nil {
		return repository{}, nil, registry.Errorf(registry.CodeOf(err), "%s: evidence: %w", name, err)
	}
	referred, err := repo.subjects(ctx, subjects)
	if err != nil {
		return repository{}, nil, err
	}
	blob := describe(typeBundle, b.Data)
	if err := repo.push(ctx, "bundle", blob, b.Data); err != nil {
		return repository{}, nil, err
	}
	config, data := evidenceConfig(b.Figures)
	if err := repo.push(ctx, "config of evidence", config, data); err != nil {
		return repository{}, nil, err
	}
	var manifests []attached
	for i, desc := range referred {
		raw, err := registry.CanonicalJSON(evidenceManifest(blob, config, desc, predicateType))
		if err != nil {
			return repository{}, nil, err
		}
		manifest := object{"evidence for " + subjects[i].Name, describe(ocispec.MediaTypeImageManifest, raw)}
		manifests = append(manifests, attached{document{manifest, raw}, desc.Digest})
	}
	return repo, manifests, nil
}
