// Package heads moves and holds heads, copies them to other registries as tags, and refuses moves.
package heads

import (
	"context"
	"errors"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// mirrorRounds is how often the head may move while its mirror is written.
const mirrorRounds = 5

// Announce records an intent before a change in an environment with mirrored tags. Promotions
// always record one, before they copy anything.
func Announce(ctx context.Context, s *backend.Backend, e policy.Environment, i history.Intent) error {
	if !e.External() {
		return nil
	}
	return s.Intents.Begin(ctx, i)
}

// Move applies a change that moves the head of an environment, with its tags. Tags in the
// catalog are part of the transaction. Tags in another registry are written after it, and the
// intent stays until they are written.
func Move(ctx context.Context, s *backend.Backend, e policy.Environment, change storage.Change) error {
	if e.External() {
		change.Tags, change.EndIntent = nil, false
	}
	if err := s.Apply(ctx, change); err != nil || !e.External() {
		return err
	}
	if err := WriteMirror(ctx, s, e, change.Event.Model); err != nil {
		return unmirrored{err}
	}
	return nil
}

// unmirrored is the error of a change that was applied but whose mirror could not be written.
type unmirrored struct{ error }

func (u unmirrored) Unwrap() error { return u.error }

// GiveUp ends the intent of a failed change, unless only writing its mirror failed.
func GiveUp(ctx context.Context, s *backend.Backend, e policy.Environment, i history.Intent, failed error) error {
	if made := (unmirrored{}); failed == nil || errors.As(failed, &made) {
		return failed
	}
	return errors.Join(failed, Forget(ctx, s, e, i))
}

// Forget ends the intent of a change that was not applied. If another run moved the head to the
// same release, it writes the mirror, which also ends the intent. Otherwise the intent would
// stand for an outdated mirror. It does not end the intent of another run.
func Forget(ctx context.Context, s *backend.Backend, e policy.Environment, i history.Intent) error {
	pending, _, left, err := Unfinished(ctx, s, e, i.Model)
	switch {
	case err != nil:
		return err
	case left:
		return WriteMirror(ctx, s, e, i.Model)
	case pending.Release == "" || pending.Release != i.Release || pending.From != i.From:
		return nil
	}
	return s.Intents.Abandon(ctx, pending)
}

// Unfinished returns the intent of a run that has not ended, and the head. It reports whether
// that run moved the head but did not write its mirror yet.
func Unfinished(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	model string,
) (i history.Intent, head history.Head, left bool, err error) {
	if !e.External() {
		return i, head, false, nil
	}
	pending, err := s.Intents.Pending(ctx)
	if err != nil {
		return i, head, false, err
	}
	at := slices.IndexFunc(pending, func(i history.Intent) bool { return i.Environment == e.Name && i.Model == model })
	if at < 0 {
		return i, head, false, nil
	}
	head, err = s.Head(ctx, e.Name, model)
	return pending[at], head, err == nil && head.Release == pending[at].Release, err
}

// Settle finishes an earlier run: it writes the mirror of a head that has moved.
func Settle(ctx context.Context, s *backend.Backend, e policy.Environment, model string) error {
	_, _, left, err := Unfinished(ctx, s, e, model)
	if err != nil || !left {
		return err
	}
	return WriteMirror(ctx, s, e, model)
}

// WriteMirror writes the tags of the head, reads them again, and ends the intent. It reads the head
// again after writing, so that a concurrent move is not lost. If another run wrote other tags
// meanwhile, it writes again.
func WriteMirror(ctx context.Context, s *backend.Backend, e policy.Environment, model string) error {
	err := registry.Errorf(registry.CodeConflict,
		"%s in %s moved again each time its tags on %s were written: try again", model, e.Name, e.Registry)
	for range mirrorRounds {
		head, failed := s.Catalog.Head(ctx, e.Name, model)
		if failed != nil {
			return failed
		}
		written := mirrorHead(ctx, s, e, head)
		if written != nil && !registry.HasCode(written, registry.CodeConflict) {
			return behind(e, head, written)
		}
		now, failed := s.Catalog.Head(ctx, e.Name, model)
		switch {
		case failed != nil:
			return failed
		case now.Release != head.Release:
		case written != nil:
			err = behind(e, head, written)
		default:
			return s.Intents.End(ctx, e.Name, model, head.Release)
		}
	}
	return err
}

// behind returns an error that says that the head moved but its mirror is outdated.
func behind(e policy.Environment, head history.Head, err error) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeOf(err), "%s is at %s of %s, but its tags on %s could not be updated: %w",
			e.Name, head.Version, head.Model, e.Registry, err),
		"fix the cause and run the command again: it then only writes the tags",
	)
}

func mirrorHead(ctx context.Context, s *backend.Backend, e policy.Environment, head history.Head) error {
	r, err := lookup.Release(ctx, s, e.Name, head.Model, string(head.Release))
	if err != nil {
		return err
	}
	tags := r.Tags()
	for _, tag := range mirrorOrder(tags) {
		if err := mirrorTag(ctx, s, e, head.Model, tag, tags[tag]); err != nil {
			return err
		}
	}
	return nil
}

// mirrorOrder sorts tags so that the tag of the head is written last.
func mirrorOrder(tags map[string]registry.Digest) []string {
	names := slices.Sorted(maps.Keys(tags))
	names = slices.DeleteFunc(names, func(tag string) bool { return tag == artifact.HeadTag })
	return append(names, artifact.HeadTag)
}

// mirrorTag sets one tag and reads it again. It does not write a tag that is already correct.
func mirrorTag(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	model, tag string,
	want registry.Digest,
) error {
	repository := registry.Repository(e.Name, model)
	have, err := mirrored(ctx, s, repository, tag)
	if err != nil || have == want {
		return err
	}
	if have != "" && immutable(e, tag) {
		return registry.Errorf(registry.CodePolicy,
			"tag %s of %s on %s names another digest (%s), but must not move", tag, repository, e.Registry, have)
	}
	if err := s.Mirror.SetTag(ctx, repository, tag, want); err != nil {
		return err
	}
	if have, err = mirrored(ctx, s, repository, tag); err == nil && have != want {
		return registry.Errorf(registry.CodeConflict,
			"tag %s of %s on %s was set to %s but names %q: another client writes it", tag, repository, e.Registry, want, have)
	}
	return err
}

// mirrored returns the digest that a tag names, or "" if the tag does not exist.
func mirrored(ctx context.Context, s *backend.Backend, repository, tag string) (registry.Digest, error) {
	d, err := s.Mirror.Tag(ctx, repository, tag)
	if registry.HasCode(err, registry.CodeNotFound) {
		return "", nil
	}
	return d, err
}

// immutable reports whether a tag of an environment must never move.
func immutable(e policy.Environment, tag string) bool {
	return e.Protected() && tag != artifact.HeadTag
}
