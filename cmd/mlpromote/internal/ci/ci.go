// Package ci says which CI job runs this program: by a token that the CI's issuer signed, else by the variables
// of the job, which any step of it can set.
package ci

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer/jobtoken"
)

// TokenVariable is the variable with an OIDC token of the CI job.
const TokenVariable = "MLPROMOTE_CI_TOKEN" //nolint:gosec // a name

// Audience is the audience that such a token must be for. A token for another one is for a service, and is not
// taken as a statement about a build.
const Audience = "mlpromote"

// maxToken is how many bytes a token may have.
const maxToken = 16 << 10

// Job reads which CI job this is; nil where nothing says that it is one. Without a token in the variable, a job of GitHub that may
// asks for one. Errors: CodeInvalid for a token in the variable that is not valid here: by its signature, its audience or its
// times. If the keys of its issuer cannot be fetched, the result has its claims among those that nothing confirms.
func Job(ctx context.Context, getenv func(string) string) (*evidence.CIOrigin, error) {
	token := strings.TrimSpace(getenv(TokenVariable))
	switch {
	case token != "":
		return signed(ctx, getenv, TokenVariable, token)
	case getenv("GITHUB_ACTIONS") == "true" && jobtoken.MayAsk(getenv):
		return asked(ctx, getenv), nil
	}
	claimed := variables(getenv)
	if claimed == nil {
		return nil, nil
	}
	return &evidence.CIOrigin{Claimed: claimed, Unverified: "there is no token: " + TokenVariable + " is not set"}, nil
}

// asked is the job as GitHub's token says. The job did not hand the token in, so one that cannot be had fails no build.
func asked(ctx context.Context, getenv func(string) string) *evidence.CIOrigin {
	token, err := jobtoken.GitHub(ctx, getenv, Audience)
	if err == nil {
		var job *evidence.CIOrigin
		if job, err = signed(ctx, getenv, "the token of GitHub", token); err == nil {
			return job
		}
	}
	return &evidence.CIOrigin{Claimed: variables(getenv), Unverified: registry.PlainText(err.Error())}
}

// signed is the job as a token says, whose signature is verified by the keys of its issuer. what names the token in errors.
func signed(ctx context.Context, getenv func(string) string, what, token string) (*evidence.CIOrigin, error) {
	if len(token) > maxToken {
		return nil, registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", what, len(token), maxToken)
	}
	issuer, err := oidc.IssuerOf(token)
	if err == nil && !registry.IsIssuerURL(issuer) {
		err = registry.Errorf(registry.CodeInvalid, "its issuer %.200q is no https URL", issuer)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", what, err)
	}
	identifier := oidc.New(oidc.Config{Issuers: []oidc.Issuer{{URL: issuer, Audience: Audience}}}, clock.Now, nil)
	claims, err := identifier.Claims(ctx, token)
	switch {
	case registry.HasCode(err, registry.CodeUnavailable):
		return &evidence.CIOrigin{Claimed: variables(getenv), Unverified: "the keys of " + issuer + " could not be fetched"}, nil
	case err != nil:
		err = registry.Errorf(registry.CodeInvalid, "%s: %w", what, err)
		return nil, registry.WithHint(err, "ask the CI for a token with the audience "+Audience+", right before the build")
	}
	return &evidence.CIOrigin{Issuer: issuer, Claims: public(claims)}, nil
}

// public are the claims that name a job. Others, such as the name of a person, stay out of the evidence.
func public(claims map[string]json.RawMessage) map[string]string {
	all := make(map[string]string)
	for _, name := range claimNames() {
		var text string
		if json.Unmarshal(claims[name], &text) == nil && text != "" {
			all[name] = registry.PlainText(text)
		}
	}
	return all
}

// claimNames are those of GitHub and GitLab. Sources: https://docs.github.com/en/actions/reference/security/oidc and
// https://docs.gitlab.com/ci/secrets/id_token_authentication/.
func claimNames() []string {
	return []string{
		"sub", "repository", "repository_id", "repository_owner", "repository_owner_id", "ref", "ref_type", "sha", "workflow_ref", "workflow_sha",
		"job_workflow_ref", "job_workflow_sha", "run_id", "run_number", "run_attempt", "event_name", "environment", "runner_environment",
		"project_path", "project_id", "namespace_path", "namespace_id", "ref_protected", "pipeline_id", "pipeline_source", "job_id",
		"ci_config_ref_uri", "ci_config_sha",
	}
}

// RunVariable names the URL of the run where the CI system sets no variable with it, such as Tekton.
const RunVariable = "MLPROMOTE_CI_RUN_URL"

// Run is the URL of the run, as variables of the job say it; empty outside of a job, or where they say none. Any step of the job
// can set them. Sources: https://docs.github.com/en/actions/reference/workflows-and-actions/variables,
// https://docs.gitlab.com/ci/variables/predefined_variables/ and https://www.jenkins.io/doc/book/pipeline/jenkinsfile/,
// "Using environment variables".
func Run(getenv func(string) string) string {
	switch {
	case getenv(RunVariable) != "":
		return evidence.RunURL(getenv(RunVariable))
	case getenv("GITHUB_ACTIONS") == "true" && getenv("GITHUB_REPOSITORY") != "" && getenv("GITHUB_RUN_ID") != "":
		text := cmp.Or(getenv("GITHUB_SERVER_URL"), "https://github.com") + "/" + getenv("GITHUB_REPOSITORY") + "/actions/runs/" + getenv("GITHUB_RUN_ID")
		if attempt := getenv("GITHUB_RUN_ATTEMPT"); attempt != "" {
			text += "/attempts/" + attempt
		}
		return evidence.RunURL(text)
	case getenv("GITLAB_CI") == "true":
		return evidence.RunURL(getenv("CI_JOB_URL"))
	}
	return evidence.RunURL(getenv("BUILD_URL")) // of Jenkins
}

// variables are what the variables of a job say, by the names of claims; nil outside of a job.
func variables(getenv func(string) string) map[string]string {
	all := make(map[string]string)
	for claim, variable := range variableNames(getenv) {
		if text := getenv(variable); text != "" {
			all[claim] = registry.PlainText(text)
		}
	}
	if run := Run(getenv); run != "" {
		all[evidence.ClaimRun] = run
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// variableNames are the variables of a system, by the names of claims.
func variableNames(getenv func(string) string) map[string]string {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return map[string]string{
			"repository": "GITHUB_REPOSITORY", "repository_id": "GITHUB_REPOSITORY_ID", "sha": "GITHUB_SHA", "ref": "GITHUB_REF",
			"workflow_ref": "GITHUB_WORKFLOW_REF", "workflow_sha": "GITHUB_WORKFLOW_SHA", "run_id": "GITHUB_RUN_ID", "run_attempt": "GITHUB_RUN_ATTEMPT",
			"event_name": "GITHUB_EVENT_NAME", "runner_environment": "RUNNER_ENVIRONMENT",
		}
	case getenv("GITLAB_CI") == "true":
		return map[string]string{
			"project_path": "CI_PROJECT_PATH", "project_id": "CI_PROJECT_ID", "sha": "CI_COMMIT_SHA", "ref": "CI_COMMIT_REF_NAME",
			"pipeline_id": "CI_PIPELINE_ID", "pipeline_source": "CI_PIPELINE_SOURCE", "job_id": "CI_JOB_ID",
		}
	case getenv("JENKINS_URL") != "":
		return map[string]string{"job_name": "JOB_NAME", "build_number": "BUILD_NUMBER", "sha": "GIT_COMMIT"}
	}
	return nil
}
