package attachment

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// about reads the release that evidence is about. One that cannot be read is given by what the history says of it, for a quarantine
// of that very release: what is damaged must not escape it. damaged is why it cannot be read; nil for one that can. Errors: those of
// [Service.Release].
func about(ctx context.Context, s *backend.Backend, a api.Attachment) (r artifact.Release, damaged, err error) {
	r, err = lookup.Release(ctx, s, a.Environment, a.Model, string(a.Release))
	if !registry.IsUnreadable(err) || a.Subject != a.Release {
		return r, nil, err
	}
	m, recorded := recordedManifest(ctx, s, a.Environment, a.Model, a.Release)
	if !recorded {
		return r, nil, err
	}
	for e, failed := range s.Catalog.History(ctx, history.HistoryQuery{Environment: a.Environment, Model: a.Model}) {
		if failed != nil {
			return r, nil, failed
		}
		if e.Release == a.Release && e.Version != "" {
			// The tag stands for the version: nothing else is known of it.
			return artifact.Release{Model: a.Model, Version: e.Version, Revision: 1, Digest: a.Release, Size: m.Size}, err, nil
		}
	}
	return r, nil, err
}

// recordedManifest returns the record of a manifest, of an environment whose content is here.
func recordedManifest(ctx context.Context, s *backend.Backend, environment, model string, d registry.Digest) (storage.Manifest, bool) {
	e, err := s.Find(environment)
	if err != nil || e.External() || s.Manifests == nil {
		return storage.Manifest{}, false
	}
	m, err := s.Manifests.Manifest(ctx, registry.Repository(environment, model), d)
	return m, err == nil
}
