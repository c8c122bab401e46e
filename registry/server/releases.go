package server

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/rest"
)

// releaseOf returns the release that a query names, and its environment.
func releaseOf(s server, r *request) (artifact.Release, string, error) {
	environment, err := environmentOf(r.Values)
	if err != nil {
		return artifact.Release{}, "", err
	}
	release, err := s.Registry.Release(r.Context(), environment, r.Name, r.Values.Get("ref"))
	return release, environment, err
}

func getRelease(s server, r *request) (*response, error) {
	release, _, err := releaseOf(s, r)
	if err != nil {
		return nil, err
	}
	a, err := ok(release)
	if err == nil && r.Values.Get("ref") == string(release.Digest) {
		a.with("Cache-Control", forever)
	}
	return a, err
}

func listEngines(s server, r *request) (*response, error) {
	release, _, err := releaseOf(s, r)
	if err != nil {
		return nil, err
	}
	return ok(nonNil(release.Engines))
}

func getEngine(s server, r *request) (*response, error) {
	environment, err := environmentOf(r.Values)
	if err != nil {
		return nil, err
	}
	engine, err := s.Registry.Engine(r.Context(), environment, r.Name, registry.Digest(r.Values.Get("digest")))
	if err != nil {
		return nil, err
	}
	a, err := ok(engine)
	if err != nil {
		return nil, err
	}
	return a.with("Cache-Control", forever), nil
}

// getComparison returns what differs between two releases of a model.
func getComparison(s server, r *request) (*response, error) {
	var sides [2]api.ReleaseSide
	for i, name := range []string{"from", "to"} {
		d := registry.Digest(r.Values.Get(name))
		if err := d.Validate(); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "%s=%.80q: want the digest of a release", name, d)
		}
		var err error
		if sides[i], err = api.ReadSide(r.Context(), s.Registry, r.Name, d); err != nil {
			return nil, err
		}
	}
	c, err := api.CompareSides(r.Context(), s.Compare, sides[0], sides[1])
	if err != nil {
		return nil, err
	}
	return ok(c)
}

// listEvidence returns the evidence about a release: claims that verify, and ignored evidence.
func listEvidence(s server, r *request) (*response, error) {
	release, environment, err := releaseOf(s, r)
	if err != nil {
		return nil, err
	}
	claims, ignored, err := s.Registry.Claims(r.Context(), environment, release)
	if err != nil {
		return nil, err
	}
	return ok(rest.Claims{Claims: nonNil(claims), Ignored: nonNil(ignored.Ignored), IgnoredCount: ignored.IgnoredCount})
}

// listQuarantines returns the quarantines of a release and its engines. The registry decides which
// ones count, so that clients need not know the rule.
func listQuarantines(s server, r *request) (*response, error) {
	release, environment, err := releaseOf(s, r)
	if err != nil {
		return nil, err
	}
	claims, _, err := s.Registry.Claims(r.Context(), environment, release)
	if err != nil {
		return nil, err
	}
	found := []rest.Quarantine{}
	for _, subject := range release.Subjects() {
		for _, c := range evidence.Quarantines(release, claims, subject.Digest) {
			q, _ := c.Quarantine()
			found = append(found, rest.Quarantine{
				Bundle: c.Bundle, Subject: subject.Digest, Label: subject.Name, Reason: q.Reason,
				IssuedOn: q.IssuedOn, Signer: c.Signer, RecordedAt: c.RecordedAt})
		}
	}
	return ok(found)
}

// getBundle returns the exact bytes of one piece of evidence.
func getBundle(s server, r *request) (*response, error) {
	environment, err := environmentOf(r.Values)
	if err != nil {
		return nil, err
	}
	bundle, err := s.Registry.Bundle(r.Context(), environment, r.Name, registry.Digest(r.Values.Get("digest")))
	if err != nil {
		return nil, err
	}
	a := &response{status: http.StatusOK, kind: rest.BundleType, body: bundle.Data}
	return a.with("Cache-Control", forever), nil
}
