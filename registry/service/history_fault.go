package service

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// HistoryFaults compares the history with every head, with every release that has a tag in an
// environment and the evidence about it, and with the catalog's list of evidence.
func (s *Service) HistoryFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	return s.compare(ctx, s.everMoved, s.faultsOf)
}

// HeadFaults is HistoryFaults without the evidence, but for summaries of heads: a few reads
// for each model, and one of the history.
func (s *Service) HeadFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	return s.compare(ctx, s.withHeads, s.headFaultsOf)
}

func (s *Service) compare(
	ctx context.Context,
	list func(context.Context) ([]modelPlace, error),
	faultsOf func(context.Context, modelPlace) ([]registry.HistoryFault, error),
) ([]registry.HistoryFault, error) {
	places, err := list(ctx)
	if err != nil {
		return nil, err
	}
	var faults []registry.HistoryFault
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

// AcceptHistory records that a person accepts what the history does not explain about a
// model in an environment: promotions go on from where its head is now. The catalog's list of
// evidence is made anew, from the history.
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
	standing, err := s.Catalog.Standing(ctx, p.environment, p.model)
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
	misplaced := slices.ContainsFunc(records, func(f registry.HistoryFault) bool { return f.Environment == p.environment })
	if len(faults) == 0 && !misplaced {
		return registry.Errorf(registry.CodeInvalid, "the history explains everything about %s in %s: there is nothing to accept", p.model, p.environment)
	}
	event := registry.Event{Time: s.Now(), Kind: registry.EventAccept, Environment: p.environment, Model: p.model,
		Version: standing.Head.Version, Release: standing.Head.Release, Reason: reason}
	for _, f := range faults {
		event.Evidence = append(event.Evidence, f.Manifests...)
	}
	return s.apply(ctx, registry.Change{Event: event, Ground: &registry.Ground{Standing: standing}})
}

// modelPlace is a model in an environment.
type modelPlace struct{ environment, model string }

// withHeads lists where there is a head, and every protected environment for each model that
// has one anywhere: the head there may be what is missing.
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

// everMoved is withHeads with the places where history says that there was a head.
func (s *Service) everMoved(ctx context.Context) ([]modelPlace, error) {
	places, err := s.withHeads(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range []registry.EventKind{registry.EventPublish, registry.EventPromote} {
		for e, err := range s.Catalog.History(ctx, registry.HistoryQuery{Kind: kind}) {
			if err != nil {
				return nil, err
			}
			places = append(places, modelPlace{e.Environment, e.Model})
		}
	}
	return unique(places), nil
}

// unique leaves the first of those that are the same.
func unique[T comparable](all []T) []T {
	seen := make(map[T]bool)
	return slices.DeleteFunc(all, func(v T) bool {
		again := seen[v]
		seen[v] = true
		return again
	})
}

// faultsOf compares the history with a head and with all that is in the environment. Where
// tags are on another registry, what counts may also be about a release of the environment
// before.
func (s *Service) faultsOf(ctx context.Context, p modelPlace) ([]registry.HistoryFault, error) {
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

// headFaultsOf compares the history with a head and its summaries, and with tags.
func (s *Service) headFaultsOf(ctx context.Context, p modelPlace) ([]registry.HistoryFault, error) {
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

// faults compares the history with a head, and with what gather adds.
func (s *Service) faults(ctx context.Context, p modelPlace, gather func(*audit) error) ([]registry.HistoryFault, error) {
	standing, err := s.Catalog.Standing(ctx, p.environment, p.model)
	if err != nil {
		return nil, err
	}
	fault, err := s.headFault(ctx, standing)
	if err != nil {
		return nil, err
	}
	var faults []registry.HistoryFault
	if fault != nil {
		faults = append(faults, *fault)
	}
	e, err := s.find(p.environment)
	if err != nil { // the catalog knows it, and the configuration no longer has it
		return faults, nil //nolint:nilerr // it has no content that could be read
	}
	a := s.audit(e, standing)
	if err := gather(a); err != nil {
		return nil, err
	}
	found, err := a.faults(ctx)
	return append(faults, found...), err
}

// headFault compares the history with a head.
func (s *Service) headFault(ctx context.Context, standing registry.Standing) (*registry.HistoryFault, error) {
	return standing.CheckHead(s.Catalog.History(ctx, registry.HistoryQuery{
		Environment: standing.Environment, Model: standing.Model, Before: standing.Seq + 1, Descending: true}))
}

// tagged lists the releases that have a tag in an environment.
func (s *Service) tagged(ctx context.Context, environment, model string) ([]registry.TaggedRelease, error) {
	var releases []registry.TaggedRelease
	for after := ""; ; {
		page, err := s.Releases(ctx, environment, model, after, registry.MaxPage)
		if err != nil {
			return nil, err
		}
		releases = append(releases, page.Items...)
		if after = page.Next; after == "" {
			return releases, nil
		}
	}
}

// unexplained refuses a promotion where the history does not explain the destination's head
// or tags, the evidence about the release or the head there, or where the catalog lists
// evidence about the release otherwise than the history.
func (s *Service) unexplained(ctx context.Context, m move, here, there []registry.Claim) error {
	fault, err := s.headFault(ctx, m.ground.Standing)
	if err != nil {
		return err
	}
	var faults []error
	if fault != nil {
		faults = append(faults, fault.Err())
	}
	a := s.audit(m.to, m.ground.Standing)
	a.promoting = true
	if head := m.ground.Head.Release; head != "" && head != m.release.Digest {
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
