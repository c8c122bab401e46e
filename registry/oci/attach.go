package oci

import (
	"bytes"
	"context"
	"math/rand/v2"
	"time"

	"oras.land/oras-go/v2/content"

	"mlpromote.dev/mlpromote/registry"
)

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

func (r repository) missing(c object) error {
	return registry.Errorf(registry.CodeInternal, "%s: %s %s was stored, but does not exist", r.name, c.what, c.desc.Digest)
}
