package oci

import (
	"bytes"
	"context"
	"math/rand/v2"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

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

// attachTries is how often a referrer is stored until its repository lists it. attachPause is
// the longest pause before the second attempt; it doubles from then on.
const (
	attachTries = 6
	attachPause = 25 * time.Millisecond
)

// attached is a manifest that refers to a subject.
type attached struct {
	document
	subject registry.Digest
}

// attach stores a referrer and checks that the repository lists it. In a registry without the
// referrers API, the list is in a tag, which clients read, change and write back. So one client
// can undo the change of another; then attach stores the referrer again. Errors: CodeConflict
// if it is still not listed at the end; CodeInternal if it does not exist.
func (r repository) attach(ctx context.Context, a attached) error {
	done, err := r.isAttached(ctx, a)
	for try := 0; err == nil && !done && try < attachTries; try++ {
		if err := pause(ctx, try); err != nil {
			return err
		}
		if err := r.pushFrom(ctx, a.what, a.desc, bytes.NewReader(a.raw)); err != nil {
			return err
		}
		done, err = r.isAttached(ctx, a)
	}
	if err != nil || done {
		return err
	}
	there, err := r.has(ctx, a.what, a.desc)
	if err != nil {
		return err
	}
	if !there {
		return r.missing(a.object)
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeConflict,
			"%s: %s %s was stored %d times and is not listed among the referrers of %s", r.name, a.what, a.desc.Digest, attachTries, a.subject),
		"another client may be writing the same list of referrers: run it again later")
}

// isAttached reports whether a referrer exists and is listed.
func (r repository) isAttached(ctx context.Context, a attached) (bool, error) {
	there, err := r.has(ctx, a.what, a.desc)
	if err != nil || !there {
		return false, err
	}
	return r.lists(ctx, a)
}

// lists reports whether a referrer is listed for its subject, with a descriptor by which it can
// be read.
func (r repository) lists(ctx context.Context, a attached) (bool, error) {
	for desc, err := range r.referrers(ctx, a.subject) {
		if err != nil || content.Equal(desc, a.desc) {
			return err == nil, err
		}
	}
	return false, nil
}

// pause waits before every attempt except the first. Pauses double, with jitter so that two
// conflicting clients do not stay in step.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(attachPause << (try - 1))) //nolint:gosec // jitter needs no secret randomness
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
