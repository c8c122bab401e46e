package oci

import (
	"context"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Relist lists existing evidence among its subject's referrers again, after another client
// removed it from the list. Errors: CodeNotFound if the evidence does not exist; CodeInvalid if
// it is not evidence; those of PutEvidence.
func (s *Store) Relist(ctx context.Context, name string, d registry.Digest) error {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return err
	}
	desc, err := repo.resolve(ctx, "evidence", string(d))
	if err != nil {
		return err
	}
	e, _, ok, err := repo.wholeEvidence(ctx, desc)
	if err != nil {
		return err
	}
	if !ok {
		return registry.Errorf(registry.CodeInvalid, "%s: %s is not a complete piece of evidence", name, d)
	}
	return repo.attach(ctx, attached{e.document, e.subject})
}

// Restore stores evidence again, by the exact bytes of its manifest and document. Its per-case figures, if it names any,
// must be there. Errors: CodeInvalid if it is not evidence; those of PutEvidence.
func (s *Store) Restore(ctx context.Context, name string, b evidence.Bundle) error {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return err
	}
	var m ocispec.Manifest
	if !readable(b.Manifest, &m) || m.Subject == nil || !isEvidence(m) {
		return registry.Errorf(registry.CodeInvalid, "%s: %s is not evidence", name, b.Digest)
	}
	if err := repo.push(ctx, "bundle", m.Layers[0], b.Data); err != nil {
		return err
	}
	if m.Config.MediaType != typeFigures {
		config, data := evidenceConfig(nil)
		if err := repo.push(ctx, "config of evidence", config, data); err != nil {
			return err
		}
	}
	manifest := object{"evidence", describe(ocispec.MediaTypeImageManifest, b.Manifest)}
	return repo.attach(ctx, attached{document{manifest, b.Manifest}, m.Subject.Digest})
}
