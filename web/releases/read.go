package releases

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/web/page"
)

// PageSize is how many releases of a model are listed at a time.
const PageSize = 20

// Read is a release with its evidence.
type Read struct {
	artifact.Release
	environment string
	Claims      []evidence.Claim
	counted     []evidence.Claim
	ignored     evidence.IgnoredEvidence
}

// ReadRelease reads a release and its evidence.
func ReadRelease(ctx context.Context, reg api.Interface, environment, model, ref string) (Read, error) {
	release, err := reg.Release(ctx, environment, model, ref)
	if err != nil {
		return Read{}, err
	}
	claims, dropped, err := reg.Claims(ctx, environment, release)
	if err != nil {
		return Read{}, err
	}
	counted, misplaced := evidence.Accept(release, claims)
	dropped.Ignore(misplaced...)
	return Read{release, environment, claims, counted, dropped}, nil
}

// FindPlace finds a release: in the environment that is asked for, or in the last environment of the chain that has it
// and that the reader may see.
func FindPlace(ctx context.Context, reg api.Interface, asked string, find func(environment string) error) (policy.Environments, string, error) {
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

// Side is a release in a comparison.
type Side struct {
	Version, URL, Environment string
	Digest                    page.Digest
}

func sideOf(in Read) Side {
	return Side{in.Tag(), page.ReleaseURL(in.Model, in.Digest, in.environment), in.environment, page.DigestOf(in.Digest)}
}

// side is the release as the registry compares it.
func (in Read) side() api.ReleaseSide {
	return api.ReleaseSide{Environment: in.environment, Release: in.Release, Claims: in.Claims}
}

// releaseOf finds a release of an environment with an engine: the head, else the first by tag.
func releaseOf(reg api.Interface, r *http.Request, environment, model string, d registry.Digest) (Read, error) {
	in, err := ReadRelease(r.Context(), reg, environment, model, "")
	if err == nil {
		if _, ok := in.Engine(d); ok {
			return in, nil
		}
	} else if !registry.HasCode(err, registry.CodeNotFound) {
		return in, err
	}
	for after := ""; ; {
		list, err := reg.Releases(r.Context(), environment, model, after, PageSize)
		if err != nil {
			return in, err
		}
		for _, t := range list.Items {
			release, err := reg.Release(r.Context(), environment, model, string(t.Release))
			if err != nil {
				return in, err
			}
			if _, ok := release.Engine(d); ok {
				return ReadRelease(r.Context(), reg, environment, model, string(t.Release))
			}
		}
		if after = list.Next; after == "" || after > "" && len(list.Items) == 0 {
			return in, registry.Errorf(registry.CodeNotFound, "no release of %s in %s has engine %s", model, environment, d)
		}
	}
}
