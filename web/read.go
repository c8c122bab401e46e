package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

const releasesPage = 20

// read is a release with its evidence.
type read struct {
	artifact.Release
	environment string
	claims      []evidence.Claim
	counted     []evidence.Claim
	ignored     evidence.IgnoredEvidence
}

// readRelease reads a release and its evidence.
func readRelease(ctx context.Context, reg api.Interface, environment, model, ref string) (read, error) {
	release, err := reg.Release(ctx, environment, model, ref)
	if err != nil {
		return read{}, err
	}
	claims, dropped, err := reg.Claims(ctx, environment, release)
	if err != nil {
		return read{}, err
	}
	counted, misplaced := evidence.Accept(release, claims)
	dropped.Ignore(misplaced...)
	return read{release, environment, claims, counted, dropped}, nil
}

// findPlace finds a release: in the environment that is asked for, or in the last one of the chain that has it and
// that the reader may see.
func findPlace(ctx context.Context, reg api.Interface, asked string, find func(environment string) error) (policy.Environments, string, error) {
	environments, err := reg.Environments(ctx)
	if err != nil {
		return environments, "", err
	}
	if asked != "" {
		if _, err := environments.Find(asked); err != nil {
			return environments, "", err
		}
		return environments, asked, find(asked)
	}
	var first error
	for i := len(environments.List) - 1; i >= 0; i-- {
		name := environments.List[i].Name
		err := find(name)
		if err == nil {
			return environments, name, nil
		}
		if !registry.HasCode(err, registry.CodeNotFound) && !registry.HasCode(err, registry.CodeForbidden) {
			return environments, "", err
		}
		first = err
	}
	return environments, "", first
}

// side is one of the two releases.
type side struct {
	Version, URL, Environment string
	Digest                    digest
}

func sideOf(in read) side {
	return side{in.Tag(), releaseURL(in.Model, in.Digest, in.environment), in.environment, digestOf(in.Digest)}
}

// side is the release as the registry compares it.
func (in read) side() api.ReleaseSide {
	return api.ReleaseSide{Environment: in.environment, Release: in.Release, Claims: in.claims}
}

// releaseOf finds a release of an environment with an engine: the head, else the first by tag.
func releaseOf(reg api.Interface, r *http.Request, environment, model string, d registry.Digest) (read, error) {
	in, err := readRelease(r.Context(), reg, environment, model, "")
	if err == nil {
		if _, ok := in.Engine(d); ok {
			return in, nil
		}
	} else if !registry.HasCode(err, registry.CodeNotFound) {
		return in, err
	}
	for after := ""; ; {
		page, err := reg.Releases(r.Context(), environment, model, after, releasesPage)
		if err != nil {
			return in, err
		}
		for _, t := range page.Items {
			release, err := reg.Release(r.Context(), environment, model, string(t.Release))
			if err != nil {
				return in, err
			}
			if _, ok := release.Engine(d); ok {
				return readRelease(r.Context(), reg, environment, model, string(t.Release))
			}
		}
		if after = page.Next; after == "" || after > "" && len(page.Items) == 0 {
			return in, registry.Errorf(registry.CodeNotFound, "no release of %s in %s has engine %s", model, environment, d)
		}
	}
}
