package approver

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Find lists the places of a release or an engine, by environment in the order of the chain,
// then by model and version. An empty model means every model, an empty environment every
// environment. A place per environment and model is enough for an engine: evidence about it
// counts for every release that has it. Nothing is known of a release that cannot
// be read: [Quarantiner.Unread] gets it. Errors: CodeNotFound if there is no place.
func (q Quarantiner) Find(ctx context.Context, environment, model string, subject registry.Digest) ([]Place, error) {
	var places []Place
	for _, e := range q.Environments.List {
		if environment != "" && e.Name != environment {
			continue
		}
		models, err := q.models(ctx, e.Name, model)
		if err != nil {
			return nil, err
		}
		for _, name := range models {
			p, found, err := q.findIn(ctx, e.Name, name, subject)
			if err != nil {
				return nil, err
			}
			if found {
				places = append(places, p)
			}
		}
	}
	if len(places) == 0 {
		return nil, registry.Errorf(registry.CodeNotFound, "%s is neither a release nor an engine of one here", subject)
	}
	return places, nil
}

// models lists the models of an environment, or the one that was asked for.
func (q Quarantiner) models(ctx context.Context, environment, model string) ([]string, error) {
	if model != "" {
		return []string{model}, nil
	}
	var names []string
	for after := ""; ; {
		page, err := q.Registry.Models(ctx, environment, after, 0)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Items {
			names = append(names, m.Name)
		}
		if after = page.Next; after == "" {
			return names, nil
		}
	}
}

// findIn looks for the subject at the head, and then in every tagged release.
func (q Quarantiner) findIn(ctx context.Context, environment,
	model string, subject registry.Digest) (Place, bool, error) {
	heads, err := q.Registry.Heads(ctx, environment, model)
	if err != nil {
		return Place{}, false, err
	}
	for _, h := range heads {
		if p, found, err := q.holds(ctx, environment, model, h.Version, h.Release, subject); err != nil || found {
			p.Head = true
			return p, found, err
		}
	}
	for after := ""; ; {
		page, err := q.Registry.Releases(ctx, environment, model, after, 0)
		if err != nil {
			return Place{}, false, err
		}
		for _, tagged := range page.Items {
			if p, found, err := q.holds(ctx, environment, model, tagged.Tag, tagged.Release, subject); err != nil || found {
				return p, found, err
			}
		}
		if after = page.Next; after == "" {
			return Place{}, false, nil
		}
	}
}

// holds reports whether a release is the subject or has it among its engines. The image form of an engine stands for the engine. A release that cannot be read is the subject if that is
// its digest: then its tag and digest are all that is known, and enough for a quarantine.
func (q Quarantiner) holds(ctx context.Context, environment,
	model, tag string, release, subject registry.Digest) (Place, bool, error) {
	r, err := q.Registry.Release(ctx, environment, model, string(release))
	if registry.IsUnreadable(err) && release == subject {
		return Place{Environment: environment, Model: model, Version: tag, Release: release,
			Subject: artifact.Subject{Name: "release", Digest: release, Index: true}}, true, nil
	}
	if registry.IsUnreadable(err) {
		if q.Unread != nil {
			q.Unread(Unread{environment, model, release, err.Error()})
		}
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, err
	}
	found, ok := r.Subject(subject)
	if found.Engine != "" { // its image form stops with it
		found, ok = r.Subject(found.Engine)
	}
	return Place{Environment: environment, Model: model, Version: r.Tag(), Release: r.Digest, Subject: found}, ok, nil
}
