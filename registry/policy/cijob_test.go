package policy_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// builtIn is provenance that names a CI job.
func builtIn(subject registry.Digest, ci *evidence.CIOrigin) evidence.Claim {
	return claim(evidence.PredicateProvenance, subject, builder, evidence.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"internalParameters": map[string]any{"origin": evidence.Origin{CI: ci}}}})
}

// Only what a token of the right issuer says of a job is proven. What variables claim, and tokens of others, are not.
func TestCIJob(t *testing.T) {
	t.Parallel()
	const issuer = "https://gitlab.example"
	want := map[string]string{"project_id": "7", "ref_protected": "true"}
	for name, c := range map[string]struct {
		engine *evidence.CIOrigin
		says   string // what is unmet; empty: met
	}{
		"proven":               {&evidence.CIOrigin{Issuer: issuer, Claims: map[string]string{"project_id": "7", "ref_protected": "true", "job_id": "1"}}, ""},
		"claimed by variables": {&evidence.CIOrigin{Claimed: want, Unverified: "there is no token"}, "only what variables of a job claim (there is no token)"},
		"claimed with an issuer that nobody verified": {&evidence.CIOrigin{Claimed: map[string]string{"iss": issuer, "project_id": "7"}}, "only what variables of a job claim"},
		"another issuer":  {&evidence.CIOrigin{Issuer: "https://evil.example", Claims: want}, `of "https://evil.example"`},
		"another project": {&evidence.CIOrigin{Issuer: issuer, Claims: map[string]string{"project_id": "8", "ref_protected": "true"}}, `project_id "8"`},
		"without a claim": {&evidence.CIOrigin{Issuer: issuer, Claims: map[string]string{"project_id": "7"}, Claimed: want}, `ref_protected ""`},
		"a merge request": {&evidence.CIOrigin{Issuer: issuer, Claims: map[string]string{"project_id": "7", "ref_protected": "true", "pipeline_source": "merge_request_event"}}, `"merge_request_event" started its job`},
		"a push":          {&evidence.CIOrigin{Issuer: issuer, Claims: map[string]string{"project_id": "7", "ref_protected": "true", "pipeline_source": "push"}}, ""},
		"no job":          {nil, "names no CI job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			policy := policy.Policy{Require: []string{"ci-job"}, CIJob: &policy.CIJob{Issuer: issuer, Claims: want}}
			proven := &evidence.CIOrigin{Issuer: issuer, Claims: want}
			claims := []evidence.Claim{builtIn(r.Digest, proven)}
			for n, e := range r.Engines {
				if n == 0 {
					claims = append(claims, builtIn(e.Digest, c.engine))
				} else {
					claims = append(claims, builtIn(e.Digest, proven))
				}
			}
			d := policy.Check(r, claims)
			if d.Allowed() != (c.says == "") {
				t.Errorf("allowed: %v, unmet: %+v", d.Allowed(), d.Unmet())
			}
			if unmet := d.Unmet(); c.says != "" && (len(unmet) != 1 || unmet[0].Subject != r.Engines[0].Label() || !strings.Contains(unmet[0].Detail, c.says)) {
				t.Errorf("unmet: %+v, want %q of the first engine", unmet, c.says)
			}
			if release := policy.Check(r, claims[1:]); release.Allowed() {
				t.Error("a release of which nothing names a job is allowed")
			}
			other := claims[1]
			other.Roles = []evidence.Role{evidence.RoleVerifier}
			if only := policy.Check(r, append([]evidence.Claim{other}, claims[2:]...)); only.Allowed() {
				t.Error("provenance by a verifier counts")
			}
		})
	}
}

func TestCIJobValidate(t *testing.T) {
	t.Parallel()
	claims := map[string]string{"project_id": "7"}
	if err := (&policy.CIJob{Issuer: "https://a.example", Claims: claims}).Validate(); err != nil {
		t.Errorf("a job of a project: %v", err)
	}
	for name, j := range map[string]*policy.CIJob{
		"no issuer": {Claims: claims}, "a name": {Issuer: "gitlab", Claims: claims}, "in the clear": {Issuer: "http://gitlab.example", Claims: claims},
		"no claims": {Issuer: "https://a.example"}, "an empty claim": {Issuer: "https://a.example", Claims: map[string]string{"sub": ""}},
	} {
		if err := j.Validate(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// A value that no token of the issuer can have is refused: the rule would allow nothing, and say why only at a promotion.
func TestCIJobRefusesWhatNoTokenSays(t *testing.T) {
	t.Parallel()
	const gitHub, gitLab = "https://token.actions.githubusercontent.com", "https://gitlab.com"
	for name, c := range map[string]struct {
		issuer, claim, value, says string // says is empty where the value is taken
	}{
		"a pattern of refs":       {gitHub, "ref", "refs/heads/*", "want one value without a wildcard"},
		"a pattern of GitLab":     {gitLab, "ref", "release-?", "want one value without a wildcard"},
		"spaces":                  {gitLab, "ref", " main", "without spaces around it"},
		"a branch of GitHub":      {gitHub, "ref", "main", "such as refs/heads/main"},
		"a ref of GitHub":         {gitHub, "ref", "refs/heads/main", ""},
		"a branch of GitLab":      {gitLab, "ref", "main", ""},
		"a name for a number":     {gitHub, "repository_id", "octo/digits", "want a number"},
		"a path for a number":     {gitLab, "project_id", "group/digits", "want a number"},
		"a number":                {gitHub, "repository_owner_id", "583231", ""},
		"a repository by its URL": {gitHub, "repository", "https://github.com/octo/digits", "want OWNER/NAME"},
		"a repository":            {gitHub, "repository", "octo/digits", ""},
		"a name alone":            {gitHub, "repository", "digits", "want OWNER/NAME"},
		"of another issuer":       {"https://ci.example", "repository", "digits", ""},
	} {
		err := (&policy.CIJob{Issuer: c.issuer, Claims: map[string]string{c.claim: c.value}}).Validate()
		if c.says == "" && err != nil || c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}
