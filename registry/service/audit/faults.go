package audit

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/documents"
	"mlpromote.dev/mlpromote/registry/storage"
)

// HistoryFaults compares the history with every head, with every tagged release of an
// environment and its evidence, with the catalog's list of evidence, and with restriction lists and
// trust bundles.
func HistoryFaults(ctx context.Context, s *backend.Backend) ([]history.HistoryFault, error) {
	faults, err := compare(ctx, s, everMoved, faultsOf)
	if err != nil {
		return nil, err
	}
	more, err := documents.Faults(ctx, s)
	return append(faults, more...), err
}

// HeadFaults is HistoryFaults without evidence other than the summaries of heads, and without
// restriction lists and trust bundles that are not the newest. It costs a few reads per model and one
// read of the history.
func HeadFaults(ctx context.Context, s *backend.Backend) ([]history.HistoryFault, error) {
	faults, err := compare(ctx, s, withHeads, headFaultsOf)
	if err != nil {
		return nil, err
	}
	more, err := documents.FaultsInForce(ctx, s)
	return append(faults, more...), err
}

func compare(
	ctx context.Context, s *backend.Backend,
	list func(context.Context, *backend.Backend) ([]modelPlace, error),
	faultsOf func(context.Context, *backend.Backend, modelPlace) ([]history.HistoryFault, error),
) ([]history.HistoryFault, error) {
	places, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	var faults []history.HistoryFault
	for _, p := range places {
		found, err := faultsOf(ctx, s, p)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	misplaced, err := recordFaults(ctx, s, "")
	return append(faults, misplaced...), err
}

// AcceptHistory records that a person accepts the faults of a model in an environment.
// Promotions then continue from the current head. It rebuilds the catalog's list of evidence
// from the history.
func AcceptHistory(ctx context.Context, s *backend.Backend, environment, model, reason string) error {
	if _, err := s.Find(environment); err != nil {
		return err
	}
	if err := backend.CheckReason("history accept", "it stays in the history", reason); err != nil {
		return err
	}
	if err := backend.Decide(func() error { return accept(ctx, s, modelPlace{environment, model}, reason) }); err != nil {
		return err
	}
	return s.Records.Reindex(ctx, model)
}

// accept records an acceptance.
func accept(ctx context.Context, s *backend.Backend, p modelPlace, reason string) error {
	standing, err := s.Catalog.ModelState(ctx, p.environment, p.model)
	if err != nil {
		return err
	}
	faults, err := faultsOf(ctx, s, p)
	if err != nil {
		return err
	}
	records, err := recordFaults(ctx, s, p.model)
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
	return s.Apply(ctx, storage.Change{Event: event, DecisionBasis: &history.DecisionBasis{ModelState: standing}})
}

// faultsOf compares the history with a head and all content of its environment. If the tags are
// on another registry, evidence may also be about a release of the environment before.
func faultsOf(ctx context.Context, s *backend.Backend, p modelPlace) ([]history.HistoryFault, error) {
	return faults(ctx, s, p, func(a *audit) error {
		if err := a.addTagged(ctx); err != nil {
			return err
		}
		if err := a.readEvidence(ctx); err != nil || !a.environment.Protected() {
			return err
		}
		from, err := tagged(ctx, s, a.environment.From, p.model)
		for _, r := range from {
			a.add(r.Release, "")
		}
		return errors.Join(err, a.readSummaries(ctx))
	})
}

// headFaultsOf compares the history with a head, its summaries and its tags.
func headFaultsOf(ctx context.Context, s *backend.Backend, p modelPlace) ([]history.HistoryFault, error) {
	return faults(ctx, s, p, func(a *audit) error {
		if !a.environment.Protected() {
			return nil
		}
		from, err := s.Head(ctx, a.environment.From, p.model)
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
func faults(
	ctx context.Context, s *backend.Backend,
	p modelPlace,
	gather func(*audit) error,
) ([]history.HistoryFault, error) {
	standing, err := s.Catalog.ModelState(ctx, p.environment, p.model)
	if err != nil {
		return nil, err
	}
	fault, err := headFault(ctx, s, standing)
	if err != nil {
		return nil, err
	}
	var faults []history.HistoryFault
	if fault != nil {
		faults = append(faults, *fault)
	}
	e, err := s.Find(p.environment)
	if err != nil { // the catalog has the head, but the configuration no longer has the environment
		return faults, nil //nolint:nilerr // its content cannot be read
	}
	a := newAudit(s, e, standing)
	if err := gather(a); err != nil {
		return nil, err
	}
	found, err := a.faults(ctx)
	if err != nil {
		return nil, err
	}
	lost, err := adverseFaults(ctx, s, p)
	return slices.Concat(faults, found, lost), err
}

// headFault compares the history with a head.
func headFault(ctx context.Context, s *backend.Backend, standing history.ModelState) (*history.HistoryFault, error) {
	return standing.CheckHead(s.Catalog.History(ctx, history.HistoryQuery{
		Environment: standing.Environment, Model: standing.Model, Before: standing.Seq + 1, Descending: true}))
}

// CheckExplained refuses a promotion if the history does not explain the head or tags of the
// destination, the evidence about the release or that head, or the catalog's order of evidence
// about the release.
func CheckExplained(
	ctx context.Context, s *backend.Backend, to policy.Environment, release registry.Digest, basis history.ModelState, here, there []evidence.Claim,
) error {
	fault, err := headFault(ctx, s, basis)
	if err != nil {
		return err
	}
	var faults []error
	if fault != nil {
		faults = append(faults, fault.Err())
	}
	a := newAudit(s, to, basis)
	a.promoting = true
	if basis.Head.Release != release {
		err = a.readSummaries(ctx)
	}
	a.add(release, "").claims = there
	if err := errors.Join(err, a.addTagged(ctx)); err != nil {
		return err
	}
	found, err := a.faults(ctx)
	for _, f := range found {
		faults = append(faults, f.Err())
	}
	return errors.Join(append(faults, err, misplaced(ctx, s, basis, slices.Concat(here, there)))...)
}
