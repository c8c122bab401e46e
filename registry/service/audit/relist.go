package audit

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// RelistRelease restores evidence about a release that the history names but that another client
// pushed out of a list of referrers. The audit reports evidence that no longer exists.
func RelistRelease(ctx context.Context, s *backend.Backend, environment policy.Environment, r artifact.Release) error {
	if !environment.External() {
		return nil
	}
	repository := registry.Repository(environment.Name, r.Model)
	listed := make(map[registry.Digest]bool)
	var lost []evidence.Bundle // of what the catalog keeps
	for _, subject := range r.Subjects() {
		for b, err := range s.Content.Evidence(ctx, repository, subject.Digest) {
			if err != nil {
				return err
			}
			if listed[b.Digest] = true; b.Unlisted && slices.Contains(b.Kept, environment.Name) {
				b.Manifest, b.Data = nil, nil // they may be many
				lost = append(lost, b)
			}
		}
	}
	for _, b := range lost {
		if _, err := restore(ctx, s, repository, b); err != nil {
			return err
		}
	}
	events, err := s.History(ctx, history.HistoryQuery{Environment: environment.Name, Model: r.Model})
	if err != nil {
		return err
	}
	for _, d := range Recorded(events, r) {
		if listed[d] {
			continue
		}
		if err := s.Mirror.Relist(ctx, repository, d); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			return err
		}
	}
	return nil
}

// Recorded lists the evidence about a release that events name.
func Recorded(events []history.Event, r artifact.Release) []registry.Digest {
	var all []registry.Digest
	for _, e := range events {
		if Concerns(e, r) {
			all = append(all, e.Evidence...)
		}
	}
	return all
}

// Relist lists adverse evidence again that the history of an environment names and its repository lost. It returns the
// number of pieces. [HeadFaults] reports those that it cannot list again.
func Relist(ctx context.Context, s *backend.Backend) (int, error) {
	places, err := everMoved(ctx, s)
	if err != nil {
		return 0, err
	}
	n := 0
	var failed []error
	for _, p := range places {
		lost, err := unlisted(ctx, s, p)
		failed = append(failed, err)
		for _, b := range lost {
			again, err := restore(ctx, s, registry.Repository(p.environment, p.model), b)
			if failed = append(failed, err); again {
				n++
			}
		}
	}
	return n, errors.Join(failed...)
}

// restore lists adverse evidence again that the catalog keeps, and stores it again if it is gone. It reports whether that
// worked: a repository may refuse what names per-case figures that are gone too. It counts all the same. Errors:
// CodeUnavailable and CodeConflict.
func restore(ctx context.Context, s *backend.Backend, repository string, b evidence.Bundle) (bool, error) {
	if s.Mirror == nil {
		return false, nil
	}
	err := s.Mirror.Relist(ctx, repository, b.Digest)
	if registry.HasCode(err, registry.CodeNotFound) || registry.HasCode(err, registry.CodeInvalid) {
		if b, err = s.Content.Bundle(ctx, repository, b.Digest); err == nil {
			err = s.Mirror.Restore(ctx, repository, b)
		}
	}
	if err != nil && ctx.Err() == nil && !registry.HasCode(err, registry.CodeUnavailable) && !registry.HasCode(err, registry.CodeConflict) {
		return false, nil
	}
	return err == nil, err
}

// Concerns reports whether an event recorded evidence about a release or an engine of it.
func Concerns(e history.Event, r artifact.Release) bool {
	if e.Kind == history.EventAttach {
		_, isSubject := r.Subject(e.Subject)
		return isSubject
	}
	return e.Kind == history.EventPromote && e.Release == r.Digest
}
