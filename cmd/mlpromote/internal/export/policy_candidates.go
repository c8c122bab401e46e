package export

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
)

// candidate is a release that an environment may have, with a summary that a cluster would accept.
type candidate struct {
	model   string
	release registry.Digest
	tagged  bool // it has a tag in the environment
}

// candidates lists the releases to look at: those with a tag in the environment, and those that the history names
// there or in an environment before it. A promotion that is refused at the last moment leaves a summary
// without a tag. What the caller may not read makes the policy partial.
func (a *Admission) candidates(ctx context.Context, in *connect.Registry) ([]candidate, error) {
	models, err := a.models(ctx, in)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, model := range models {
		tagged, err := taggedReleases(ctx, in, a.Environment, model)
		if err := a.leftOut(err); err != nil {
			return nil, err
		}
		seen := make(map[registry.Digest]bool)
		for _, d := range tagged {
			if !seen[d] {
				all = append(all, candidate{model, d, true})
			}
			seen[d] = true
		}
		for _, e := range a.chain(in.Envs) {
			events, err := in.History(ctx, history.HistoryQuery{Environment: e, Model: model})
			if err := a.leftOut(err); err != nil {
				return nil, err
			}
			for _, event := range events {
				if event.Release != "" && !seen[event.Release] {
					all = append(all, candidate{model, event.Release, false})
				}
				seen[event.Release] = true
			}
		}
	}
	return all, nil
}

// leftOut notes that the caller may not read something, and returns every other error.
func (a *Admission) leftOut(err error) error {
	if registry.HasCode(err, registry.CodeForbidden) {
		a.Partial = true
		return nil
	}
	return err
}

// chain lists the environment and those from which releases come to it.
func (a *Admission) chain(es policy.Environments) (names []string) {
	for name := a.Environment; name != "" && len(names) <= len(es.List); {
		names = append(names, name)
		e, err := es.Find(name)
		if err != nil {
			return names
		}
		name = e.From
	}
	return names
}

// models lists all models of the registry: also one without a head in the environment can have a summary there.
func (a *Admission) models(ctx context.Context, in *connect.Registry) (names []string, err error) {
	if a.Model != "" {
		return []string{a.Model}, nil
	}
	for after := ""; ; {
		page, err := in.Models(ctx, "", after, 0)
		if err != nil {
			return nil, err
		}
		a.Partial = a.Partial || page.Partial
		for _, m := range page.Items {
			names = append(names, m.Name)
		}
		if after = page.Next; after == "" {
			return names, nil
		}
	}
}

// taggedReleases lists the releases of a model that have a tag.
func taggedReleases(ctx context.Context, in *connect.Registry, environment, model string) (all []registry.Digest, err error) {
	for after := ""; ; {
		page, err := in.Releases(ctx, environment, model, after, 0)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Items {
			all = append(all, t.Release)
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}
