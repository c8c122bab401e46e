package service

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Guard is a Deleter that keeps what others rely on: evidence while its subject lives,
// and whatever the head of a repository is made of. It does not ask who deletes.
type Guard struct {
	registry.Deleter
	Environments registry.Environments
	Manifests    registry.Manifests
	Catalog      registry.Catalog
	Records      registry.Records
	Content      registry.Content
	Verify       registry.VerifyEvidence
}

// DeleteManifest refuses, with CodePolicy, the release at a head and its parts, and evidence
// whose subject is there if the history names it or a trusted key signed it. What a stranger
// attached may go.
func (g Guard) DeleteManifest(ctx context.Context, repository string, d registry.Digest) error {
	m, err := g.Manifests.Manifest(ctx, repository, d)
	if err != nil {
		return err
	}
	if subject := m.Derived.Subject; subject != "" {
		if err := g.keepEvidence(ctx, repository, d, subject); err != nil {
			return err
		}
	}
	heads, err := g.heads(ctx, repository)
	if err != nil {
		return err
	}
	for _, head := range heads {
		r, err := g.Content.Release(ctx, repository, string(head.Release))
		if err != nil {
			return err
		}
		_, isEngine := r.Engine(d)
		if isEngine || d == r.Digest || d == r.Limits || d == r.Interface {
			return refuse(nil, "%s belongs to %s, the head of %s", d, r.Tag(), repository)
		}
	}
	return g.Deleter.DeleteManifest(ctx, repository, d)
}

// keepEvidence refuses to delete what somebody may rely on as evidence about a subject.
func (g Guard) keepEvidence(ctx context.Context, repository string, d, subject registry.Digest) error {
	_, err := g.Manifests.Manifest(ctx, repository, subject)
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	model, _ := registry.ModelOf(repository)
	named, err := g.Records.Recorded(ctx, model, []registry.Digest{d})
	if len(named) > 0 || err != nil {
		return refuse(err, "%s is evidence about %s, which is there, and the history names it: evidence goes with its subject", d, subject)
	}
	signer, err := g.signer(ctx, repository, d)
	if signer != "" || err != nil {
		return refuse(err, "%s is evidence about %s, which is there, and the trusted key %s signed it: evidence goes with its subject", d, subject, signer)
	}
	return nil
}

// signer is the trusted key that signed a bundle, for whatever environment it is trusted, or
// "". What is not a bundle has none.
func (g Guard) signer(ctx context.Context, repository string, d registry.Digest) (string, error) {
	b, err := g.Content.Bundle(ctx, repository, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	model, _ := registry.ModelOf(repository)
	for _, e := range g.Environments.List {
		claim, err := g.Verify(ctx, b.Data, g.Environments.ResourceURI(e.Name, model))
		if err == nil {
			return claim.Signer, nil
		}
		if !registry.HasCode(err, registry.CodeTrust) {
			return "", err
		}
	}
	return "", nil
}

// DeleteTag refuses the mirror of a head and the tags of its release.
func (g Guard) DeleteTag(ctx context.Context, repository, tag string) error {
	heads, err := g.heads(ctx, repository)
	if err != nil {
		return err
	}
	for _, head := range heads {
		if tag == registry.HeadTag || tag == head.Version || strings.HasPrefix(tag, head.Version+".") {
			return refuse(nil, "tag %s belongs to %s, the head of %s", tag, head.Version, repository)
		}
	}
	return g.Deleter.DeleteTag(ctx, repository, tag)
}

// RemoveBlob refuses to take blobs from a repository that has a head: which of them the
// head needs is for a collector to find out.
func (g Guard) RemoveBlob(ctx context.Context, repository string, d registry.Digest) error {
	heads, err := g.heads(ctx, repository)
	if err != nil {
		return err
	}
	if len(heads) > 0 {
		return refuse(nil, "%s has a head, so its blobs are not deleted one by one", repository)
	}
	return g.Deleter.RemoveBlob(ctx, repository, d)
}

// heads are those of the repository: one, or none.
func (g Guard) heads(ctx context.Context, repository string) ([]registry.Head, error) {
	environment, model, _ := strings.Cut(repository, "/")
	return g.Catalog.Heads(ctx, environment, model)
}

// refuse passes an error on, or says why not.
func refuse(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return registry.Errorf(registry.CodePolicy, format, args...)
}
