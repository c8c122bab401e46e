package oci

import (
	"context"
	"encoding/json"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// subjects looks up the manifests to which evidence will be attached.
func (r repository) subjects(ctx context.Context, subjects []artifact.Subject) ([]ocispec.Descriptor, error) {
	var out []ocispec.Descriptor
	for _, subject := range subjects {
		desc, err := r.resolve(ctx, subject.Name, string(subject.Digest))
		if err != nil {
			return nil, err
		}
		if desc.Size != subject.Size || subject.Index != (desc.MediaType == ocispec.MediaTypeImageIndex) {
			return nil, registry.Errorf(registry.CodeInvalid,
				"%s: %s %s is a %q of %d bytes, which is not the subject of %d bytes that was named",
				r.name, subject.Name, subject.Digest, desc.MediaType, desc.Size, subject.Size)
		}
		out = append(out, ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size})
	}
	return out, nil
}

// evidenceConfig is the config of evidence: per-case figures, or else the empty one that cosign v3 writes.
func evidenceConfig(figures []byte) (ocispec.Descriptor, []byte) {
	if len(figures) > 0 {
		return describe(typeFigures, figures), figures
	}
	empty := ocispec.DescriptorEmptyJSON
	return ocispec.Descriptor{MediaType: empty.MediaType, Digest: empty.Digest, Size: empty.Size, ArtifactType: typeBundle}, empty.Data
}

// evidenceManifest returns the referrer that cosign v3 writes, without the time. Source:
// sigstore/cosign, pkg/oci/remote/write.go, and specs/BUNDLE_SPEC.md.
func evidenceManifest(bundle, config, subject ocispec.Descriptor, predicateType string) ocispec.Manifest {
	m := newManifest(typeBundle, config, []ocispec.Descriptor{bundle}, map[string]string{
		keyBundleContent: bundleContent,
		keyPredicateType: predicateType,
	})
	m.Subject = &subject
	return m
}

// bundleDocument has the fields of a sigstore bundle that this package reads. Package signer
// checks the signature.
type bundleDocument struct {
	MediaType string `json:"mediaType"`
	Envelope  *struct {
		Payload []byte `json:"payload"`
	} `json:"dsseEnvelope"`
}

// readBundle returns the predicate type of the statement in a bundle. Errors: CodeInvalid.
func readBundle(b evidence.Bundle) (string, error) {
	if len(b.Data) > maxDocument {
		return "", registry.Errorf(registry.CodeInvalid, "the bundle has %d bytes: at most %d are stored", len(b.Data), maxDocument)
	}
	if len(b.Figures) > evidence.MaxCaseFigures {
		return "", registry.Errorf(registry.CodeInvalid,
			"the per-case figures have %d bytes: at most %d are stored", len(b.Figures), evidence.MaxCaseFigures)
	}
	var document bundleDocument
	if err := decode(b.Data, &document); err != nil {
		return "", err
	}
	if document.MediaType != typeBundle || document.Envelope == nil {
		return "", registry.Errorf(registry.CodeInvalid,
			"it is a %q, or has no DSSE envelope: want a bundle of the type %s", document.MediaType, typeBundle)
	}
	var statement evidence.Statement
	if err := decode(document.Envelope.Payload, &statement); err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "the payload of the bundle: %w", err)
	}
	switch {
	case statement.PredicateType == "":
		return "", registry.Errorf(registry.CodeInvalid, "the statement in the bundle has no predicateType")
	case b.PredicateType != "" && b.PredicateType != statement.PredicateType:
		return "", registry.Errorf(registry.CodeInvalid,
			"the statement in the bundle has the predicate type %q: want %q", statement.PredicateType, b.PredicateType)
	}
	return statement.PredicateType, nil
}

// Bundle reads one piece of evidence. Errors: see [storage.EvidenceStore].
func (s *Store) Bundle(ctx context.Context, name string, d registry.Digest) (evidence.Bundle, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return evidence.Bundle{}, err
	}
	desc, err := repo.resolve(ctx, "evidence", string(d))
	if err != nil {
		return evidence.Bundle{}, err
	}
	e, b, ok, err := repo.wholeEvidence(ctx, desc)
	b.Manifest = e.raw
	if err == nil && !ok {
		err = registry.Errorf(registry.CodeNotFound, "%s: %s is not evidence", name, d)
	}
	if err != nil || e.config.MediaType != typeFigures {
		return b, err
	}
	b.Figures, err = repo.read(ctx, "per-case figures", e.config)
	return b, unlessMissing(err)
}

// storedEvidence is one piece of evidence as it is stored, without its bundle.
type storedEvidence struct {
	document                         // the manifest
	subject       registry.Digest    // the manifest that it is attached to
	predicateType string             // as the manifest claims
	blob          ocispec.Descriptor // of the bundle
	config        ocispec.Descriptor
}

// wholeEvidence reads a referrer with its bundle. It returns false if that is not evidence, or
// its bundle cannot be read.
func (r repository) wholeEvidence(ctx context.Context, desc ocispec.Descriptor) (storedEvidence, evidence.Bundle, bool, error) {
	e, ok, err := r.evidence(ctx, desc, "")
	if err != nil || !ok {
		return storedEvidence{}, evidence.Bundle{}, false, err
	}
	data, err := r.read(ctx, "bundle", e.blob)
	if err != nil {
		return storedEvidence{}, evidence.Bundle{}, false, unlessMissing(err)
	}
	return e, evidence.Bundle{Digest: e.desc.Digest, Document: e.blob.Digest, PredicateType: e.predicateType, Data: data}, true, nil
}

// evidence reads the manifest of a referrer. It returns false if that is not evidence about
// the subject; an empty subject means any.
func (r repository) evidence(ctx context.Context, desc ocispec.Descriptor, subject registry.Digest) (storedEvidence, bool, error) {
	if desc.MediaType != ocispec.MediaTypeImageManifest || desc.Size > maxDocument {
		return storedEvidence{}, false, nil
	}
	raw, err := r.read(ctx, "evidence manifest", desc)
	if err != nil {
		return storedEvidence{}, false, unlessMissing(err)
	}
	var m ocispec.Manifest
	if !readable(raw, &m) || m.Subject == nil || subject != "" && m.Subject.Digest != subject || !isEvidence(m) {
		return storedEvidence{}, false, nil
	}
	return storedEvidence{
		document:      document{object{"evidence manifest", describe(desc.MediaType, raw)}, raw},
		subject:       m.Subject.Digest,
		predicateType: m.Annotations[keyPredicateType],
		blob:          m.Layers[0],
		config:        m.Config,
	}, true, nil
}

// isEvidence implements cosign's rule for evidence, within our limits.
func isEvidence(m ocispec.Manifest) bool {
	return len(m.Layers) == 1 && strings.HasPrefix(m.Layers[0].MediaType, bundleFamily) &&
		max(m.Layers[0].Size, m.Config.Size) <= maxDocument &&
		checkDescriptor(m.Layers[0]) == nil && checkDescriptor(m.Config) == nil
}

// unlessMissing drops errors about content that a pusher left out or wrote incorrectly. Bytes
// that were changed later are still an error.
func unlessMissing(err error) error {
	if code := registry.CodeOf(err); code == registry.CodeNotFound || code == registry.CodeInvalid {
		return nil
	}
	return err
}

// readable decodes a document from an untrusted pusher.
func readable(raw []byte, into any) bool { return json.Unmarshal(raw, into) == nil }
