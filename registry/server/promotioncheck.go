package server

import (
	"mlpromote.dev/mlpromote/registry"
)

// promotionCheck says whether a release may be promoted. What cannot be decided is an error with a status of its
// own, so that only a decision is 200. The release is named, since a head moves between the answer and its use.
func (s server) promotionCheck(r *request) (*response, error) {
	to, err := environmentOf(r.Values)
	if err != nil {
		return nil, err
	}
	environments, err := s.Registry.Environments(r.Context())
	if err != nil {
		return nil, err
	}
	from, _, err := environments.Edge("", to)
	if err != nil {
		return nil, err
	}
	release, err := s.releaseToCheck(r, from.Name)
	if err != nil {
		return nil, err
	}
	promotion, refused := s.Preview.Preview(r.Context(), registry.PromoteRequest{
		Model: r.Name, Ref: string(release.Digest), From: from.Name, To: to})
	check, err := registry.CheckPromotion(release, from.Name, to, s.URL, promotion, refused)
	if err != nil {
		return nil, err
	}
	return ok(check)
}

// releaseToCheck reads the release that a query names by version, digest or both, in the environment that it would come
// from. Errors: CodeInvalid without either; CodeConflict if they name two releases.
func (s server) releaseToCheck(r *request, from string) (registry.Release, error) {
	version, digest := r.Values.Get("version"), registry.Digest(r.Values.Get("digest"))
	switch {
	case len(r.Values["environment"]) > 1 || len(r.Values["version"]) > 1 || len(r.Values["digest"]) > 1:
		return registry.Release{}, registry.Errorf(registry.CodeInvalid, "query: want one environment, one version and one digest at most")
	case version == "" && digest == "":
		return registry.Release{}, registry.Errorf(registry.CodeInvalid, "query: the release is missing: want version=TAG or digest=DIGEST, since a head can move")
	case version != "" && !registry.ValidTag(version):
		return registry.Release{}, registry.Errorf(registry.CodeInvalid, "query: version %.100q: want a tag such as 1.2.0", version)
	case digest != "" && digest.Validate() != nil:
		return registry.Release{}, registry.Errorf(registry.CodeInvalid, "query: digest %.100q: want sha256 and 64 hexadecimal digits", digest)
	}
	ref := version
	if ref == "" {
		ref = string(digest)
	}
	release, err := s.Registry.Release(r.Context(), from, r.Name, ref)
	if err == nil && digest != "" && release.Digest != digest {
		return registry.Release{}, registry.Lastingf(registry.CodeConflict, "version %s of %s is %s in %s, not %s: ask about one of them", version, r.Name, release.Digest, from, digest)
	}
	return release, err
}
