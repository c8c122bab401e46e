package service_test

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// tracedContent is content of which every call is one step, for operations that only meet
// one another there. It remembers what it read once, since all schedules of a test read the
// same; whether a repository has it is looked up each time.
type tracedContent struct {
	storage.Content
	arena *arena
}

// known is what schedules that begin in the same state have read and verified.
type known struct {
	mu       sync.Mutex
	claims   map[string]evidence.Claim
	releases map[registry.Digest]artifact.Release
	bundles  map[registry.Digest]evidence.Bundle
	engines  map[registry.Digest]artifact.Engine
}

func newKnown() *known {
	return &known{
		claims: make(map[string]evidence.Claim), releases: make(map[registry.Digest]artifact.Release),
		bundles: make(map[registry.Digest]evidence.Bundle), engines: make(map[registry.Digest]artifact.Engine),
	}
}

// remembered gives what is known by a key, or finds it out.
func remembered[K comparable, V any](k *known, all map[K]V, key K, find func() (V, error)) (V, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok := all[key]; ok {
		return v, nil
	}
	v, err := find()
	if err == nil {
		all[key] = v
	}
	return v, err
}

func (k *known) verify(verify storage.VerifyEvidence) storage.VerifyEvidence {
	return func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
		return remembered(k, k.claims, resource+"\n"+string(bundle), func() (evidence.Claim, error) { return verify(ctx, bundle, resource) })
	}
}

func (c tracedContent) refs(repository string) tracedRefs {
	if c.arena.isFar(repository) {
		return tracedRefs{c.arena.far}
	}
	return tracedRefs{c.arena.db}
}

func (c tracedContent) Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error] {
	return func(yield func(evidence.Bundle, error) bool) {
		var all []evidence.Bundle
		var err error
		strandOf(ctx).step("Evidence "+repository, func() { all, err = c.evidence(ctx, repository, subject) })
		if err != nil {
			yield(evidence.Bundle{}, err)
			return
		}
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

func (c tracedContent) evidence(ctx context.Context, repository string, subject registry.Digest) ([]evidence.Bundle, error) {
	var all []evidence.Bundle
	for m, err := range storage.AllReferrers(ctx, c.refs(repository), repository, subject, "") {
		if err != nil {
			return nil, err
		}
		b, err := remembered(c.arena.known, c.arena.known.bundles, m.Digest, func() (evidence.Bundle, error) { return c.Bundle(ctx, repository, m.Digest) })
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b evidence.Bundle) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Digest, b.Digest))
	})
	return all, nil
}

func (c tracedContent) PutEvidence(
	ctx context.Context, repository string, b evidence.Bundle, subjects []artifact.Subject,
) (put []registry.Digest, err error) {
	strandOf(ctx).step("PutEvidence "+repository, func() { put, err = c.Content.PutEvidence(ctx, repository, b, subjects) })
	return put, err
}

func (c tracedContent) Release(ctx context.Context, repository, name string) (r artifact.Release, err error) {
	strandOf(ctx).step("Release "+repository, func() {
		d := registry.Digest(name)
		if registry.ValidTag(name) {
			if d, err = c.refs(repository).Tag(ctx, repository, name); err != nil {
				return
			}
		}
		if _, err = c.refs(repository).Manifest(ctx, repository, d); err == nil {
			r, err = remembered(c.arena.known, c.arena.known.releases, d, func() (artifact.Release, error) {
				return c.Content.Release(ctx, repository, string(d))
			})
		}
	})
	return r, err
}

// Rehash does not hash, since no bytes are changed here.
func (c tracedContent) Rehash(ctx context.Context, repository string, r artifact.Release) (err error) {
	strandOf(ctx).step("Rehash "+repository, func() { _, err = c.refs(repository).Manifest(ctx, repository, r.Digest) })
	return err
}

func (c tracedContent) Copy(ctx context.Context, from, to string, r artifact.Release, evidence []registry.Digest) (err error) {
	strandOf(ctx).step("Copy "+from+" "+to, func() { err = c.Content.Copy(ctx, from, to, r, evidence) })
	return err
}

func (c tracedContent) Engine(ctx context.Context, repository string, d registry.Digest) (e artifact.Engine, err error) {
	strandOf(ctx).step("Engine "+repository, func() {
		if _, err = c.refs(repository).Manifest(ctx, repository, d); err == nil {
			e, err = remembered(c.arena.known, c.arena.known.engines, d, func() (artifact.Engine, error) { return c.Content.Engine(ctx, repository, d) })
		}
	})
	return e, err
}
