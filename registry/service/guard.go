package service

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Guard is a Deleter that keeps what others rely on: evidence while its subject lives,
// and whatever the head of a repository is made of.
type Guard struct {
	registry.Deleter
	Manifests registry.Manifests
	Catalog   registry.Catalog
	Content   registry.Content
}

// DeleteManifest refuses, with CodePolicy, evidence whose subject is there, the release
// at a head, and its parts.
func (g Guard) DeleteManifest(ctx context.Context, repository string, d registry.Digest) error {
	m, err := g.Manifests.Manifest(ctx, repository, d)
	if err != nil {
		return err
	}
	if subject := m.Derived.Subject; subject != "" {
		_, err := g.Manifests.Manifest(ctx, repository, subject)
		if !registry.HasCode(err, registry.CodeNotFound) {
			return refuse(err, "%s is evidence about %s, which is there: evidence goes with its subject", d, subject)
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
