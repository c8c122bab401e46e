package service

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// HistoryFaults compares the history with every head, with every tagged release of an
// environment and its evidence, with the catalog's list of evidence, and with restriction lists and
// trust bundles.
func (s *Service) HistoryFaults(ctx context.Context) ([]history.HistoryFault, error) {
	faults, err := s.compare(ctx, s.everMoved, s.faultsOf)
	if err != nil {
		return nil, err
	}
	more, err := s.documentFaults(ctx)
	return append(faults, more...), err
}

// HeadFaults is HistoryFaults without evidence other than the summaries of heads, and without
// restriction lists and trust bundles that are not the newest. It costs a few reads per model and one
// read of the history.
func (s *Service) HeadFaults(ctx context.Context) ([]history.HistoryFault, error) {
	faults, err := s.compare(ctx, s.withHeads, s.headFaultsOf)
	if err != nil {
		return nil, err
	}
	more, err := s.inForceFaults(ctx)
	return append(faults, more...), err
}

func (s *Service) compare(
	ctx context.Context,
	list func(context.Context) ([]modelPlace, error),
	faultsOf func(context.Context, modelPlace) ([]history.HistoryFault, error),
) ([]history.HistoryFault, error) {
	places, err := list(ctx)
	if err != nil {
		return nil, err
	}
	var faults []history.HistoryFault
	for _, p := range places {
		found, err := faultsOf(ctx, p)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	misplaced, err := s.recordFaults(ctx, "")
	return append(faults, misplaced...), err
}

// AcceptHistory records that a person accepts the faults of a model in an environment.
// Promotions then continue from the current head. It rebuilds the catalog's list of evidence
// from the history.
func (s *Service) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	if _, err := s.find(environment); err != nil {
		return err
	}
	if err := checkReason("history accept", "it stays in the history", reason); err != nil {
		return err
	}
	if err := decided(func() error { return s.accept(ctx, modelPlace{environment, model}, reason) }); err != nil {
		return err
	}
	return s.Records.Reindex(ctx, model)
}

// accept records an acceptance.
func (s *Service) accept(ctx context.Context, p modelPlace, reason string) error {
	standing, err := s.Catalog.ModelState(ctx, p.environment, p.model)
	if err != nil {
		return err
	}
	faults, err := s.faultsOf(ctx, p)
	if err != nil {
		return err
	}
	records, err := s.recordFaults(ctx, p.model)
	if err != nil {
		return err
	}
	misplaced := slices.ContainsFunc(records, func(f history.HistoryFault) bool { return f.Environment == p.environment })
	if len(faults) == 0 && !misplaced {
		return registry.Errorf(registry.CodeInvalid,
			"the history of %s in %s has no faults: nothing to accept", p.model, p.environment)
	}
	event := history.Event{Time: s.Now(), Kind: history.EventAccept, Environment: p.environment, Model: p.model,
		Version: standing.Head.Version, Release: standing.Head.Release, Reason: reason}
	for _, f := range faults {
		event.Evidence = append(event.Evidence, f.Manifests...)
	}
	return s.apply(ctx, storage.Change{Event: event, DecisionBasis: &history.DecisionBasis{ModelState: standing}})
}

// modelPlace is a model in an environment.
type modelPlace struct{ environment, model string }

// withHeads lists the places that have a head, and every protected environment for each model
// that has a head anywhere. The head of such an environment may be missing.
func (s *Service) withHeads(ctx context.Context) ([]modelPlace, error) {
	heads, err := s.Catalog.Heads(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var places []modelPlace
	for _, h := range heads {
		places = append(places, modelPlace{h.Environment, h.Model})
	}
	for _, h := range heads {
		for _, e := range s.Config.Environments.List {
			if e.Protected() {
				places = append(places, modelPlace{e.Name, h.Model})
			}
		}
	}
	return unique(places), nil
}

// everMoved is withHeads plus the places that had a head according to the history.
func (s *Service) everMoved(ctx context.Context) ([]modelPlace, error) {
	places, err := s.withHeads(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range []history.EventKind{history.EventPublish, history.EventPromote} {
		for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Kind: kind}) {
			if err != nil {
				return nil, err
			}
			places = append(places, modelPlace{e.Environment, e.Model})
		}
	}
	return unique(places), nil
}

// unique removes duplicates and keeps the first of each.
func unique[T comparable](all []T) []T {
	seen := make(map[T]bool)
	return slices.DeleteFunc(all, func(v T) bool {
		again := seen[v]
		seen[v] = true
		return again
	})
}

// faultsOf compares the history with a head and all content of its environment. If the tags are
// on another registry, evidence may also be about a release of the environment before.
func (s *Service) faultsOf(ctx context.Context, p modelPlace) ([]history.HistoryFault, error) {
	return s.faults(ctx, p, func(a *audit) error {
		if err := a.addTagged(ctx); err != nil {
			return err
		}
		if err := a.readEvidence(ctx); err != nil || !a.environment.Protected() {
			return err
		}
		from, err := s.tagged(ctx, a.environment.From, p.model)
		for _, r := range from {
			a.add(r.Release, "")
		}
		return errors.Join(err, a.readSummaries(ctx))
	})
}

// headFaultsOf compares the history with a head, its summaries and its tags.
func (s *Service) headFaultsOf(ctx context.Context, p modelPlace) ([]history.HistoryFault, error) {
	return s.faults(ctx, p, func(a *audit) error {
		if !a.environment.Protected() {
			return nil
		}
		from, err := s.head(ctx, a.environment.From, p.model)
		if err != nil {
			return err
		}
		if from.Release != "" {
			a.add(from.Release, "")
		}
		return errors.Join(a.readSummaries(ctx), a.addTagged(ctx))
	})
}

// faults compares the history with a head and with what gather adds.
func (s *Service) faults(
	ctx context.Context,
	p modelPlace,
	gather func(*audit) error,
) ([]history.HistoryFault, error) {
	standing, err := s.Catalog.ModelState(ctx, p.environment, p.model)
	if err != nil {
		return nil, err
	}
	fault, err := s.headFault(ctx, standing)
	if err != nil {
		return nil, err
	}
	var faults []history.HistoryFault
	if fault != nil {
		faults = append(faults, *fault)
	}
	e, err := s.find(p.environment)
	if err != nil { // the catalog has the head, but the configuration no longer has the environment
		return faults, nil //nolint:nilerr // its content cannot be read
	}
	a := s.audit(e, standing)
	if err := gather(a); err != nil {
		return nil, err
	}
	found, err := a.faults(ctx)
	if err != nil {
		return nil, err
	}
	lost, err := s.adverseFaults(ctx, p)
	return slices.Concat(faults, found, lost), err
}

// headFault compares the history with a head.
func (s *Service) headFault(ctx context.Context, standing history.ModelState) (*history.HistoryFault, error) {
	return standing.CheckHead(s.Catalog.History(ctx, history.HistoryQuery{
		Environment: standing.Environment, Model: standing.Model, Before: standing.Seq + 1, Descending: true}))
}

// tagged lists the tagged releases of an environment.
func (s *Service) tagged(ctx context.Context, environment, model string) ([]storage.TaggedRelease, error) {
	var releases []storage.TaggedRelease
	for after := ""; ; {
		page, err := s.Releases(ctx, environment, model, after, storage.MaxPage)
		if err != nil {
			return nil, err
		}
		releases = append(releases, page.Items...)
		if after = page.Next; after == "" {
			return releases, nil
		}
	}
}

// unexplained refuses a promotion if the history does not explain one of these: the head or
// tags of the destination, the evidence about the release or that head, or the catalog's order
// of evidence about the release.
func (s *Service) unexplained(ctx context.Context, m move, here, there []evidence.Claim) error {
	fault, err := s.headFault(ctx, m.basis.ModelState)
	if err != nil {
		return err
	}
	var faults []error
	if fault != nil {
		faults = append(faults, fault.Err())
	}
	a := s.audit(m.to, m.basis.ModelState)
	a.promoting = true
	if m.basis.Head.Release != m.release.Digest {
		err = a.readSummaries(ctx)
	}
	a.add(m.release.Digest, "").claims = there
	if err := errors.Join(err, a.addTagged(ctx)); err != nil {
		return err
	}
	found, err := a.faults(ctx)
	for _, f := range found {
		faults = append(faults, f.Err())
	}
	return errors.Join(append(faults, err, s.misplaced(ctx, m, slices.Concat(here, there)))...)
}
