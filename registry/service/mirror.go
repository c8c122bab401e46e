package service

import (
	"context"
	"errors"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Mirror is what another registry repeats of the catalog, and may lose: tags, for clients
// that ask that registry alone, and lists of referrers, which history names too.
type Mirror interface {
	// Relist makes evidence that is in the repository one of its subject's referrers
	// again. Errors: CodeNotFound when it is not there any more.
	Relist(ctx context.Context, repository string, evidence registry.Digest) error
	// Tag gives the digest that a tag names. Errors: CodeNotFound.
	Tag(ctx context.Context, repository, tag string) (registry.Digest, error)
	// SetTag makes a tag name a manifest of the repository.
	SetTag(ctx context.Context, repository, tag string, d registry.Digest) error
}

// mirrorRounds is how often the head may move on while its mirror is written.
const mirrorRounds = 5

// announce records what is about to be done to an environment whose tags are mirrored. A
// promotion is announced anyway, before anything is copied.
func (s *Service) announce(ctx context.Context, e registry.Environment, i registry.Intent) error {
	if !e.External() {
		return nil
	}
	return s.Intents.Begin(ctx, i)
}

// move makes a change that moves the head of an environment, with its tags. Where they are
// in the catalog, all is one transaction. Where they are in another registry, they are
// written after it, and until they are the intent stands.
func (s *Service) move(ctx context.Context, e registry.Environment, change registry.Change) error {
	if e.External() {
		change.Tags, change.EndIntent = nil, false
	}
	if err := s.apply(ctx, change); err != nil || !e.External() {
		return err
	}
	if err := s.mirror(ctx, e, change.Event.Model); err != nil {
		return unmirrored{err}
	}
	return nil
}

// unmirrored is the error of a change that was made, and whose mirror could not be written.
type unmirrored struct{ error }

func (u unmirrored) Unwrap() error { return u.error }

// giveUp ends the intent of a change that failed, unless it was made and only its mirror
// failed.
func (s *Service) giveUp(ctx context.Context, e registry.Environment, i registry.Intent, failed error) error {
	if made := (unmirrored{}); failed == nil || errors.As(failed, &made) {
		return failed
	}
	return errors.Join(failed, s.forget(ctx, e, i))
}

// forget ends the intent of a change that was not made. Where another run moved the head to
// the same release, writing its mirror ends the intent too: one that is left would say that
// the mirror is behind. The intent of another run stays.
func (s *Service) forget(ctx context.Context, e registry.Environment, i registry.Intent) error {
	pending, _, left, err := s.unfinished(ctx, e, i.Model)
	switch {
	case err != nil:
		return err
	case left:
		return s.mirror(ctx, e, i.Model)
	case pending.Release == "" || pending.Release != i.Release || pending.From != i.From:
		return nil
	}
	return s.Intents.Abandon(ctx, pending)
}

// unfinished gives the intent of a run that has not ended, and the head. It reports whether
// that run moved the head and did not write its mirror yet.
func (s *Service) unfinished(ctx context.Context, e registry.Environment, model string) (i registry.Intent, head registry.Head, left bool, err error) {
	if !e.External() {
		return i, head, false, nil
	}
	pending, err := s.Intents.Pending(ctx)
	if err != nil {
		return i, head, false, err
	}
	at := slices.IndexFunc(pending, func(i registry.Intent) bool { return i.Environment == e.Name && i.Model == model })
	if at < 0 {
		return i, head, false, nil
	}
	head, err = s.head(ctx, e.Name, model)
	return pending[at], head, err == nil && head.Release == pending[at].Release, err
}

// settle finishes what an earlier run left: the mirror of a head that has moved.
func (s *Service) settle(ctx context.Context, e registry.Environment, model string) error {
	_, _, left, err := s.unfinished(ctx, e, model)
	if err != nil || !left {
		return err
	}
	return s.mirror(ctx, e, model)
}

// mirror writes the tags of the head, reads them again, and ends the intent. A head that
// moves meanwhile is mirrored too: whoever writes last must have looked last. Who finds what
// another run wrote in between, of this head or one before, writes again.
func (s *Service) mirror(ctx context.Context, e registry.Environment, model string) error {
	err := registry.Errorf(registry.CodeConflict, "%s in %s moves faster than its tags on %s can be written: try again", model, e.Name, e.Registry)
	for range mirrorRounds {
		head, failed := s.Catalog.Head(ctx, e.Name, model)
		if failed != nil {
			return failed
		}
		written := s.mirrorHead(ctx, e, head)
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

// behind says that the head is where it should be and its mirror is not.
func behind(e registry.Environment, head registry.Head, err error) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeOf(err), "%s is at %s of %s, and the tags on %s do not say so yet: %w", e.Name, head.Version, head.Model, e.Registry, err),
		"when that is mended, run it again: it writes the tags, and does nothing twice")
}

func (s *Service) mirrorHead(ctx context.Context, e registry.Environment, head registry.Head) error {
	r, err := s.Release(ctx, e.Name, head.Model, string(head.Release))
	if err != nil {
		return err
	}
	tags := r.Tags()
	for _, tag := range mirrorOrder(tags) {
		if err := s.mirrorTag(ctx, e, head.Model, tag, tags[tag]); err != nil {
			return err
		}
	}
	return nil
}

// mirrorOrder puts the tag of the head last, after all that it stands for.
func mirrorOrder(tags map[string]registry.Digest) []string {
	names := slices.Sorted(maps.Keys(tags))
	names = slices.DeleteFunc(names, func(tag string) bool { return tag == registry.HeadTag })
	return append(names, registry.HeadTag)
}

// mirrorTag sets one tag and reads it again. One that is right is left alone.
func (s *Service) mirrorTag(ctx context.Context, e registry.Environment, model, tag string, want registry.Digest) error {
	repository := registry.Repository(e.Name, model)
	have, err := s.mirrored(ctx, repository, tag)
	if err != nil || have == want {
		return err
	}
	if have != "" && immutable(e, tag) {
		return registry.Errorf(registry.CodePolicy, "tag %s of %s on %s names something else (%s) and must not move", tag, repository, e.Registry, have)
	}
	if err := s.Mirror.SetTag(ctx, repository, tag, want); err != nil {
		return err
	}
	if have, err = s.mirrored(ctx, repository, tag); err == nil && have != want {
		return registry.Errorf(registry.CodeConflict, "tag %s of %s on %s was set to %s and names %q: somebody else writes it", tag, repository, e.Registry, want, have)
	}
	return err
}

// mirrored gives what a tag names, or "" where there is no such tag.
func (s *Service) mirrored(ctx context.Context, repository, tag string) (registry.Digest, error) {
	d, err := s.Mirror.Tag(ctx, repository, tag)
	if registry.HasCode(err, registry.CodeNotFound) {
		return "", nil
	}
	return d, err
}

// immutable reports whether a tag of an environment must never move.
func immutable(e registry.Environment, tag string) bool {
	return e.Protected() && tag != registry.HeadTag
}

// tagsTaken refuses a version that history knows with another digest, or some tag of
// which names something else in the other registry. Nothing but this look keeps those
// tags from being moved, and none of them from being deleted there.
func (s *Service) tagsTaken(ctx context.Context, m move) error {
	events, err := s.History(ctx, registry.HistoryQuery{Environment: m.to.Name, Model: m.release.Model, Kind: registry.EventPromote})
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Version == m.release.Tag() && e.Release != m.release.Digest {
			return m.taken(e.Release)
		}
	}
	tags := m.release.Tags()
	for _, tag := range mirrorOrder(tags) {
		have, err := s.mirrored(ctx, m.destination(), tag)
		switch {
		case err != nil:
			return err
		case have == "" || have == tags[tag] || !immutable(m.to, tag):
		case tag == m.release.Tag():
			return m.taken(have)
		default:
			return registry.Errorf(registry.CodePolicy, "tag %s of %s on %s names something else (%s): choose a new version", tag, m.destination(), m.to.Registry, have)
		}
	}
	return nil
}
