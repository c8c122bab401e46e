package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Only a decision that allows, about the release and destination that were asked about, is a yes. What could not be
// decided is no answer at all.
func TestCheckPromotion(t *testing.T) {
	t.Parallel()
	engine := registrytest.MakeEngine("v3", "int8")
	r := artifact.Release{Model: registrytest.Model, Version: "1.2.0",
		Digest: registry.Digest("sha256:" + strings.Repeat("a", 64)), Engines: []artifact.Engine{engine}}
	met := policy.Requirement{Name: policy.RequireSignature, Subject: "release", Met: true}
	unmet := policy.Requirement{Name: policy.RequireParity, Subject: engine.Label(), Detail: "no report\nof \x1b[31ma verifier"}
	about := func(requirements ...policy.Requirement) api.Promotion {
		return api.Promotion{Environment: "prod", Model: r.Model, Release: r.Digest, Decision: policy.Decision{Requirements: requirements}}
	}
	other, elsewhere, another := about(met), about(met), about(met)
	other.Release, elsewhere.Environment, another.Model = registry.Digest("sha256:"+strings.Repeat("b", 64)), "lab", "vision/letters"
	refusal := registry.Errorf(registry.CodePolicy, "prod does not take this release")
	hold := registry.WithHint(registry.Errorf(registry.CodePolicy, "held\nby ops"), "release it")
	for name, c := range map[string]struct {
		promotion api.Promotion
		refused   error
		code      registry.Code // of an error; empty: an answer
		reasons   string        // empty: allowed
	}{
		"met":                                {about(met), nil, "", ""},
		"unmet":                              {about(met, unmet), refusal, "", "parity: no report of \\u001b[31ma verifier"},
		"unmet, without an error":            {about(met, unmet), nil, "", "parity: no report of \\u001b[31ma verifier"},
		"unmet and held":                     {about(unmet), errors.Join(refusal, hold), "", "parity: no report of \\u001b[31ma verifier|: held by ops; release it"},
		"met and held":                       {about(met), hold, "", ": held by ops; release it"},
		"no requirement":                     {about(), refusal, "", ": prod does not take this release"},
		"no requirement, without an error":   {about(), nil, "", ": its policy has no requirements, so it allows no release"},
		"refused before a decision":          {api.Promotion{}, refusal, "", ": prod does not take this release"},
		"no answer":                          {api.Promotion{}, nil, registry.CodeInternal, ""},
		"another release":                    {other, nil, registry.CodeInternal, ""},
		"another environment":                {elsewhere, nil, registry.CodeInternal, ""},
		"another model":                      {another, nil, registry.CodeInternal, ""},
		"a failure":                          {about(met), errors.New("disk"), registry.CodeInternal, ""},
		"untrusted":                          {about(met), registry.Errorf(registry.CodeTrust, "changed"), registry.CodeTrust, ""},
		"a failure beside a refusal":         {about(unmet), errors.Join(refusal, registry.Errorf(registry.CodeUnavailable, "down")), registry.CodePolicy, ""},
		"a failure that a refusal is due to": {about(unmet), registry.Errorf(registry.CodePolicy, "x: %w", errors.New("disk")), registry.CodePolicy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := api.CheckPromotion(r, "staging", "prod", "https://models.example/", c.promotion, c.refused)
			if c.code != "" {
				if err == nil || registry.CodeOf(err) != c.code || got.Allowed {
					t.Errorf("got %+v and error %v, want an error with the code %s", got, err, c.code)
				}
				return
			}
			var reasons []string
			for _, o := range got.Reasons {
				reasons = append(reasons, o.Requirement+": "+o.Message)
				page := "https://models.example/models/vision/digits/-/releases/" + string(r.Digest) + "?environment=staging"
				if o.Requirement != "" {
					page = "https://models.example/models/vision/digits/-/engines/" + string(engine.Digest) + "?environment=staging"
				}
				if o.URL != page || o.Code != registry.CodePolicy || o.Requirement != "" && o.Command != "mlpromote verify staging/vision/digits:1.2.0" {
					t.Errorf("got the reason %+v, want the page %s", o, page)
				}
			}
			if text := strings.Join(reasons, "|"); err != nil || got.Allowed != (c.reasons == "") || text != c.reasons || got.Digest != r.Digest {
				t.Errorf("got allowed %v because of %q, error %v; want %q", got.Allowed, text, err, c.reasons)
			}
		})
	}
}

// oneRelease is a registry with one release, where a promotion of it is allowed.
type oneRelease struct{ release artifact.Release }

func (o oneRelease) Environments(context.Context) (policy.Environments, error) {
	return registrytest.Chain(), nil
}

func (o oneRelease) Release(_ context.Context, environment, model, ref string) (artifact.Release, error) {
	if environment != "staging" || model != o.release.Model || ref != o.release.Tag() && ref != string(o.release.Digest) {
		return artifact.Release{}, registry.Errorf(registry.CodeNotFound, "%s of %s in %s", ref, model, environment)
	}
	return o.release, nil
}

func (o oneRelease) Preview(_ context.Context, r api.PromoteRequest) (api.Promotion, error) {
	return api.Promotion{Environment: r.To, Model: r.Model, Release: registry.Digest(r.Ref),
		Decision: policy.Decision{Requirements: []policy.Requirement{{Name: policy.RequireSignature, Met: true}}}}, nil
}

// A query names its release by version, digest or both, and both must be of one release.
func TestPromotionChecksFindTheRelease(t *testing.T) {
	t.Parallel()
	r := sample()
	o := oneRelease{r}
	checks := api.PromotionChecks{Registry: o, Preview: o}
	other := registry.Digest("sha256:" + strings.Repeat("b", 64))
	for name, c := range map[string]struct {
		query api.PromotionQuery
		code  registry.Code // of an error; empty: allowed
	}{
		"by version":                   {api.PromotionQuery{Environment: "prod", Version: "1.0.0"}, ""},
		"by digest":                    {api.PromotionQuery{Environment: "prod", Digest: r.Digest}, ""},
		"by both":                      {api.PromotionQuery{Environment: "prod", Version: "1.0.0", Digest: r.Digest}, ""},
		"by both, of two releases":     {api.PromotionQuery{Environment: "prod", Version: "1.0.0", Digest: other}, registry.CodeConflict},
		"by neither":                   {api.PromotionQuery{Environment: "prod"}, registry.CodeInvalid},
		"by a version that is no tag":  {api.PromotionQuery{Environment: "prod", Version: "-1"}, registry.CodeInvalid},
		"by a digest that is none":     {api.PromotionQuery{Environment: "prod", Digest: "sha256:00"}, registry.CodeInvalid},
		"by an unknown version":        {api.PromotionQuery{Environment: "prod", Version: "2.0.0"}, registry.CodeNotFound},
		"to no environment":            {api.PromotionQuery{Version: "1.0.0"}, registry.CodeInvalid},
		"to an unknown environment":    {api.PromotionQuery{Environment: "lab", Version: "1.0.0"}, registry.CodeNotFound},
		"to where releases are pushed": {api.PromotionQuery{Environment: "staging", Version: "1.0.0"}, registry.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.query.Model = r.Model
			got, err := checks.PromotionCheck(t.Context(), c.query)
			if c.code == "" && (err != nil || !got.Allowed || got.Digest != r.Digest) || c.code != "" && (!registry.HasCode(err, c.code) || got.Allowed) {
				t.Errorf("got %+v and error %v, want the code %q", got, err, c.code)
			}
		})
	}
}
