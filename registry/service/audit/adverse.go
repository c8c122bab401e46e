package audit

import (
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// unlisted returns what the catalog keeps of an environment, and its repository does not list, without its bytes. What is about a release or
// an engine that the repository does not have any more is not lost.
func unlisted(ctx context.Context, s *backend.Backend, p modelPlace) ([]evidence.Bundle, error) {
	e, err := s.Find(p.environment)
	if err != nil {
		return nil, nil // the configuration no longer has the environment: its content cannot be read
	}
	rows, err := s.Catalog.Adverse(ctx, p.model, "")
	if err != nil {
		return nil, err
	}
	var subjects []registry.Digest
	for _, row := range rows {
		if row.Environment == p.environment {
			subjects = append(subjects, row.Subject)
		}
	}
	var lost []evidence.Bundle
	for _, subject := range unique(subjects) {
		var here []evidence.Bundle
		for b, err := range s.Content.Evidence(ctx, registry.Repository(e.Name, p.model), subject) {
			if err != nil {
				return nil, err
			}
			if b.Unlisted && slices.Contains(b.Kept, e.Name) {
				b.Manifest, b.Data = nil, nil // they may be many: the caller reads one after the other
				here = append(here, b)
			}
		}
		there := len(here) > 0
		if there {
			if there, err = exists(ctx, s, e.Name, p.model, subject); err != nil {
				return nil, err
			}
		}
		if there {
			lost = append(lost, here...)
		}
	}
	return lost, nil
}

// adverseFaults compares the adverse evidence that the catalog keeps of an environment with what its repository lists and
// with the quarantines that events name. It looks twice before it reports something, which may have been on its way.
func adverseFaults(ctx context.Context, s *backend.Backend, p modelPlace) ([]history.HistoryFault, error) {
	found, err := compareAdverse(ctx, s, p)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return compareAdverse(ctx, s, p)
}

func compareAdverse(ctx context.Context, s *backend.Backend, p modelPlace) ([]history.HistoryFault, error) {
	lost, err := unlisted(ctx, s, p)
	if err != nil {
		return nil, err
	}
	rows, err := s.Catalog.Adverse(ctx, p.model, "")
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r evidence.AdverseEvidence) bool { return r.Environment != p.environment })
	var faults []history.HistoryFault
	fault := func(d registry.Digest, hint, format string, args ...any) {
		faults = append(faults, history.HistoryFault{Environment: p.environment, Model: p.model, Manifests: []registry.Digest{d},
			Detail: fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, row := range rows {
		if _, err := s.Catalog.AdverseRow(ctx, row.Name()); registry.HasCode(err, registry.CodeDigest) {
			fault(row.Bundle, attachAgain, "%v", err)
		} else if err != nil {
			return nil, err
		}
	}
	accepted, err := forgotten(ctx, s, p, rows, func(e history.Event, d registry.Digest) {
		fault(d, attachAgain, "event %d names the quarantine %s about %s, but the catalog does not keep it", e.Seq, d, e.Subject)
	})
	if err != nil {
		return nil, err
	}
	for _, b := range lost {
		fault(b.Digest, "others may write there, or two clients wrote the same list: mlpromote scrub lists it again, and a service does so every hour",
			"the evidence %s (%s) is not among the referrers that %s lists any more: it counts all the same",
			b.Digest, b.PredicateType, registry.Repository(p.environment, p.model))
	}
	return slices.DeleteFunc(faults, func(f history.HistoryFault) bool { return accepted[f.Manifests[0]] }), nil
}

const attachAgain = "the catalog was changed without the history: look at backups and at the log of the database, and attach it again"

// forgotten calls found with the quarantines and lifts that events of an environment name and of which there is no row. It
// returns the evidence that people accepted.
func forgotten(ctx context.Context, s *backend.Backend, p modelPlace, rows []evidence.AdverseEvidence,
	found func(history.Event, registry.Digest)) (accepted map[registry.Digest]bool, err error) {
	accepted = make(map[registry.Digest]bool)
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Environment: p.environment, Model: p.model}) {
		if err != nil {
			return nil, err
		}
		for _, d := range e.Evidence {
			switch {
			case e.Kind == history.EventAccept:
				accepted[d] = true
			case e.Kind == history.EventAttach && e.PredicateType == evidence.PredicateQuarantine &&
				!slices.ContainsFunc(rows, func(r evidence.AdverseEvidence) bool { return r.Bundle == d }):
				found(e, d)
			}
		}
	}
	return accepted, nil
}

// exists reports whether an environment has a release or an engine, be it damaged.
func exists(ctx context.Context, s *backend.Backend, environment, model string, d registry.Digest) (bool, error) {
	repository := registry.Repository(environment, model)
	_, err := s.Content.Engine(ctx, repository, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		_, err = s.Content.Release(ctx, repository, string(d))
	}
	switch {
	case registry.HasCode(err, registry.CodeNotFound):
		return false, nil
	case registry.HasCode(err, registry.CodeUnavailable):
		return false, err
	}
	return true, ctx.Err()
}
