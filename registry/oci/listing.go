package oci

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Evidence returns the bundles attached to a subject, by cosign's rule for reading: a manifest
// that refers to it, with a bundle as its only layer. It skips all other referrers, also those
// that are too large or incomplete, because untrusted clients must not be able to stop a
// promotion by attaching junk. It reads one manifest or document at a time, and each document
// once, so the amount of junk does not matter. Errors: see [storage.EvidenceStore].
func (s *Store) Evidence(ctx context.Context, name string, subject registry.Digest) iter.Seq2[evidence.Bundle, error] {
	return func(yield func(evidence.Bundle, error) bool) {
		repo, err := s.repository(ctx, name)
		if err != nil {
			yield(evidence.Bundle{}, err)
			return
		}
		found, err := s.attachments(ctx, repo, subject)
		if err != nil {
			yield(evidence.Bundle{}, err)
			return
		}
		for len(found) > 0 {
			n := sameDocument(found)
			if !s.yieldBundles(ctx, repo, found[:n], yield) {
				return
			}
			found = found[n:]
		}
	}
}

// attachment is the part of a piece of evidence that a listing keeps. It leaves out parts of
// the manifest whose length the pusher chooses.
type attachment struct {
	manifest      registry.Digest
	size          int64 // of the manifest
	predicateType string
	document      ocispec.Descriptor
}

// maxPredicateType bounds the predicate type that an annotation may claim.
const maxPredicateType = 1024

// attachments lists the evidence about a subject, each manifest once. Manifests of one
// document follow one another, the smallest first.
func (s *Store) attachments(ctx context.Context, repo repository, subject registry.Digest) ([]attachment, error) {
	var found []attachment
	for desc, err := range repo.referrers(ctx, subject) {
		if err != nil {
			return nil, err
		}
		e, ok, err := s.evidenceOf(ctx, repo, desc, subject)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		a := attachment{manifest: e.desc.Digest, size: e.desc.Size}
		a.document = ocispec.Descriptor{MediaType: typeBundle, Digest: e.blob.Digest, Size: e.blob.Size}
		if len(e.predicateType) <= maxPredicateType {
			a.predicateType = e.predicateType
		}
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b attachment) int {
		return cmp.Or(cmp.Compare(a.document.Digest, b.document.Digest), cmp.Compare(a.document.Size, b.document.Size),
			cmp.Compare(a.size, b.size), cmp.Compare(a.manifest, b.manifest))
	})
	return slices.CompactFunc(found, func(a, b attachment) bool { return a.manifest == b.manifest }), nil
}

// evidenceOf does [repository.evidence] within the store's memory bound.
func (s *Store) evidenceOf(ctx context.Context, repo repository, desc ocispec.Descriptor, subject registry.Digest) (storedEvidence, bool, error) {
	release, err := s.reserve(ctx, desc.Size)
	if err != nil {
		return storedEvidence{}, false, err
	}
	defer release()
	return repo.evidence(ctx, desc, subject)
}

// sameDocument returns how many attachments at the beginning have the same document.
func sameDocument(found []attachment) int {
	first := found[0].document
	n := slices.IndexFunc(found, func(a attachment) bool { return a.document.Digest != first.Digest || a.document.Size != first.Size })
	if n < 0 {
		return len(found)
	}
	return n
}

// yieldBundles yields the manifests of one document. It reports whether to go on.
func (s *Store) yieldBundles(ctx context.Context, repo repository, same []attachment, yield func(evidence.Bundle, error) bool) bool {
	document := same[0].document
	release, err := s.reserve(ctx, document.Size)
	if err != nil {
		return yield(evidence.Bundle{}, err) && false
	}
	defer release()
	data, err := repo.read(ctx, "bundle", document)
	if err != nil {
		if err = unlessMissing(err); err != nil {
			yield(evidence.Bundle{}, err)
		}
		return err == nil
	}
	for _, a := range same {
		if !yield(evidence.Bundle{Digest: a.manifest, Document: document.Digest, PredicateType: a.predicateType, Data: data}, nil) {
			return false
		}
	}
	return true
}

// reserve waits until the memory bound for evidence has room for a size, and takes it. Sizes
// above the limit of a document take nothing, because such documents are not read.
func (s *Store) reserve(ctx context.Context, size int64) (release func(), err error) {
	if size < 0 || size > maxDocument {
		return func() {}, nil
	}
	if err := s.reading.Acquire(ctx, size); err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "wait to read evidence: %w", err)
	}
	return func() { s.reading.Release(size) }, nil
}

// referrerLister lists referrers page by page. It is oras-go's registry.ReferrerLister.
type referrerLister interface {
	Referrers(ctx context.Context, desc ocispec.Descriptor, artifactType string, fn func(referrers []ocispec.Descriptor) error) error
}

// Referrer is a manifest that refers to another one, as the repository describes it.
type Referrer struct {
	Digest       registry.Digest
	ArtifactType string
}

// IsEvidence reports whether it claims to be evidence, by its artifact type.
func (r Referrer) IsEvidence() bool { return strings.HasPrefix(r.ArtifactType, bundleFamily) }

// Referrers lists the manifests that refer to a subject, evidence or not. If a repository
// lists one twice, so does the sequence. An error ends the sequence.
func (s *Store) Referrers(ctx context.Context, name string, subject registry.Digest) iter.Seq2[Referrer, error] {
	return func(yield func(Referrer, error) bool) {
		repo, err := s.repository(ctx, name)
		if err != nil {
			yield(Referrer{}, err)
			return
		}
		for desc, err := range repo.referrers(ctx, subject) {
			if !yield(Referrer{desc.Digest, desc.ArtifactType}, err) {
				return
			}
		}
	}
}

// errEnough ends a listing of referrers.
var errEnough = errors.New("enough")

// referrers lists manifests that may refer to a subject. The list is untrusted: it may have a
// digest more than once, with right and wrong descriptors.
func (r repository) referrers(ctx context.Context, subject registry.Digest) iter.Seq2[ocispec.Descriptor, error] {
	return func(yield func(ocispec.Descriptor, error) bool) {
		desc, err := r.Resolve(ctx, string(subject))
		if isNotFound(err) {
			return
		}
		if err != nil {
			yield(ocispec.Descriptor{}, r.failed("resolve", "subject", string(subject), err))
			return
		}
		of := ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
		err = r.eachReferrer(ctx, of, func(page []ocispec.Descriptor) error {
			for _, desc := range page {
				found := ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size, ArtifactType: desc.ArtifactType}
				if !yield(found, nil) {
					return errEnough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(ocispec.Descriptor{}, r.failed("list referrers of", "subject", string(subject), err))
		}
	}
}

// eachReferrer calls fn with pages of referrers, or with all of them if the repository has no
// pages.
func (r repository) eachReferrer(ctx context.Context, subject ocispec.Descriptor, fn func([]ocispec.Descriptor) error) error {
	if lister, ok := r.Repository.(referrerLister); ok {
		return lister.Referrers(ctx, subject, "", fn)
	}
	found, err := r.Predecessors(ctx, subject)
	if err != nil {
		return err
	}
	return fn(found)
}
