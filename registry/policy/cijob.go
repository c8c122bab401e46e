package policy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// CIJob is the CI job that must have built what is promoted to an environment. Only claims count that the builder read from a token
// which Issuer signed for that job: what variables of a job say, any step of it can set. It is the builder's word that it saw the
// token. The zero CIJob is invalid.
type CIJob struct {
	Issuer string            `json:"issuer"` // URL of who signs the tokens of jobs
	Claims map[string]string `json:"claims"` // at least one; each must be in the token with exactly this value
}

// Validate checks the form. Errors: CodeInvalid.
func (j *CIJob) Validate() error {
	if j == nil {
		return nil
	}
	if !registry.IsIssuerURL(j.Issuer) {
		return registry.Errorf(registry.CodeInvalid, "ci-job: issuer %.200q: want the https URL of who signs the tokens of the jobs", j.Issuer)
	}
	if len(j.Claims) == 0 { // every job of everybody who uses the issuer has its token
		return registry.Errorf(registry.CodeInvalid, "ci-job: no claims: want at least one that names your repository, such as repository_id of GitHub or project_id of GitLab")
	}
	for name, value := range j.Claims {
		if name == "" || value == "" {
			return registry.Errorf(registry.CodeInvalid, "ci-job: claims: %.100q: %.100q: want the name of a claim and its value", name, value)
		}
		if want := j.neverHas(name, value); want != "" {
			return registry.Errorf(registry.CodeInvalid, "ci-job: claims: %s: no token of %s says %.100q: values are compared exactly; want %s", name, j.Issuer, value, want)
		}
	}
	return nil
}

// digits are the values of claims that number a repository, a project or an owner.
var digits = regexp.MustCompile(`^[0-9]+$`)

// neverHas says what a claim looks like where no token has this value of it, so that the rule would allow nothing; else "".
func (j *CIJob) neverHas(name, value string) (want string) {
	numbers := []string{"repository_id", "repository_owner_id", "project_id", "namespace_id"}
	switch {
	case strings.ContainsAny(value, "*?"):
		return "one value without a wildcard, such as refs/heads/main"
	case strings.TrimSpace(value) != value:
		return "it without spaces around it"
	case slices.Contains(numbers, name) && !digits.MatchString(value):
		return "a number"
	case j.Issuer == issuerOfGitHub && name == "ref" && !strings.HasPrefix(value, "refs/"):
		return "the whole ref, such as refs/heads/" + value
	case j.Issuer == issuerOfGitHub && name == "repository" && strings.Count(value, "/") != 1:
		return "OWNER/NAME"
	}
	return ""
}

// String describes the job: "a CI job of https://gitlab.com with project_id 7".
func (j *CIJob) String() string {
	text := "a CI job of " + j.Issuer
	for n, name := range slices.Sorted(maps.Keys(j.Claims)) {
		text += map[bool]string{true: " with ", false: " and "}[n == 0] + name + " " + j.Claims[name]
	}
	return text
}

// differs says why an origin is not this job; empty if it is.
func (j *CIJob) differs(o *evidence.Origin) string {
	switch {
	case o == nil || o.CI == nil:
		return "its provenance names no CI job"
	case o.CI.Issuer == "":
		return "its provenance has only what variables of a job claim (" + cmpText(o.CI.Unverified, "no token was verified") + ")"
	case o.CI.Issuer != j.Issuer:
		return fmt.Sprintf("the token of its job is of %.200q", o.CI.Issuer)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Claims)) {
		if o.CI.Claims[name] != j.Claims[name] {
			return fmt.Sprintf("the token of its job has %s %.200q", name, o.CI.Claims[name])
		}
	}
	has := func(claim string) string { return o.CI.Claims[claim] }
	if !AllowsProposedJob(j.Issuer, j.Claims, has) {
		return fmt.Sprintf("%.100q started its job, which may run what a pull request proposes", cmp.Or(has("event_name"), has("pipeline_source"), "something unknown"))
	}
	return ""
}

func cmpText(text, otherwise string) string {
	if text = registry.PlainText(strings.TrimSpace(text)); text != "" {
		return text
	}
	return otherwise
}
