package service

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Guard is a Deleter that refuses to delete content in use: evidence while its subject exists,
// and all parts of a repository's head. It does not check who deletes.
type Guard struct {
	storage.Deleter
	Environments policy.Environments
	Manifests    storage.Manifests
	Catalog      storage.Catalog
	Records      history.HistoryIndex
	Content      storage.Content
	Verify       storage.VerifyEvidence
}

// DeleteManifest refuses, with CodePolicy, the release at a head, its parts, and evidence whose
// subject exists if the history names the evidence or a trusted key signed it. Other evidence
// can be deleted.
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
		_, isSubject := r.Subject(d)
		if isSubject || d == r.Limits || d == r.Interface {
			return refuse(nil, "%s belongs to %s, the head of %s", d, r.Tag(), repository)
		}
	}
	return g.Deleter.DeleteManifest(ctx, repository, d)
}

// keepEvidence refuses to delete evidence about a subject if the history names it or a trusted
// key signed it.
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
		return refuse(err, "%s is evidence about %s, and the history names it: delete %[2]s first", d, subject)
	}
	signer, err := g.signer(ctx, repository, d)
	if signer != "" || err != nil {
		return refuse(err, "%s is evidence about %s, and the trusted key %s signed it: delete %[2]s first", d,
			subject, signer)
	}
	return nil
}

// signer returns the key that signed a bundle if it is trusted in any environment, or "". It
// returns "" if d is not a bundle.
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

// DeleteTag refuses, with CodePolicy, the mirror of a head and the tags of its release.
func (g Guard) DeleteTag(ctx context.Context, repository, tag string) error {
	heads, err := g.heads(ctx, repository)
	if err != nil {
		return err
	}
	for _, head := range heads {
		if tag == artifact.HeadTag || tag == head.Version || strings.HasPrefix(tag, head.Version+".") {
			return refuse(nil, "tag %s belongs to %s, the head of %s", tag, head.Version, repository)
		}
	}
	return g.Deleter.DeleteTag(ctx, repository, tag)
}

// RemoveBlob refuses, with CodePolicy, to remove blobs from a repository that has a head. Only
// the collector determines which blobs a head needs.
func (g Guard) RemoveBlob(ctx context.Context, repository string, d registry.Digest) error {
	heads, err := g.heads(ctx, repository)
	if err != nil {
		return err
	}
	if len(heads) > 0 {
		return refuse(
			nil,
			"%s has a head, so its blobs cannot be deleted one by one: garbage collection deletes those that are unreferenced",
			repository,
		)
	}
	return g.Deleter.RemoveBlob(ctx, repository, d)
}

// heads returns the head of the repository, if any.
func (g Guard) heads(ctx context.Context, repository string) ([]history.Head, error) {
	environment, model, _ := strings.Cut(repository, "/")
	return g.Catalog.Heads(ctx, environment, model)
}

// refuse returns err if it is set, otherwise a CodePolicy error with the message.
func refuse(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return registry.Errorf(registry.CodePolicy, format, args...)
}
