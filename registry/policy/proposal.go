package policy

import (
	"cmp"
	"strings"
)

// IsProposedJob reports whether a CI job may run what somebody proposed and nobody accepted: a pull or merge request, or
// what follows one, such as workflow_run. Its token and its certificate can have all that of a job of the branch, even its ref.
// trigger is what started the job: event_name of GitHub, pipeline_source of GitLab. GitHub always says it, so where its
// issuer does not, that is taken for a proposal.
func IsProposedJob(issuer, trigger, ref string) bool {
	switch trigger {
	case "pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment", "issue_comment", "workflow_run",
		"merge_request_event", "external_pull_request_event", "parent_pipeline":
		return true
	}
	return trigger == "" && issuer == issuerOfGitHub || isProposedRef(ref)
}

// isProposedRef reports whether a ref, or a pattern for refs, is that of a pull or merge request.
func isProposedRef(ref string) bool {
	return strings.HasPrefix(ref, "refs/pull/") || strings.HasPrefix(ref, "refs/merge-requests/")
}

// AsksForProposedJobs reports whether what a rule asks of a job covers jobs of proposals: it names an environment, whose
// rules the forge applies to every job, or a pull or merge request itself, or what starts jobs.
func AsksForProposedJobs(subject string, claims map[string]string) bool {
	return cmp.Or(claims["environment"], claims["event_name"], claims["pipeline_source"]) != "" || isProposedRef(claims["ref"]) ||
		strings.Contains(subject, ":environment:") || strings.HasSuffix(subject, ":pull_request") || strings.Contains(subject, "@refs/pull/")
}

// AllowsProposedJob reports whether a rule, which claims of a job have met, allows the job if it is one of a proposal. has is
// what the job's token says. A rule that does not ask for a branch allows every job.
func AllowsProposedJob(issuer string, rule map[string]string, has func(claim string) string) bool {
	branch := cmp.Or(rule["ref"], rule["ref_path"], rule["ref_protected"], rule["ref_type"], rule["workflow_ref"]) != "" ||
		strings.Contains(rule["sub"], ":ref:")
	return !branch || AsksForProposedJobs(rule["sub"], rule) ||
		!IsProposedJob(issuer, cmp.Or(has("event_name"), has("pipeline_source")), cmp.Or(has("ref_path"), has("ref")))
}

// issuerOfGitHub signs the tokens of jobs of GitHub Actions.
const issuerOfGitHub = "https://token.actions.githubusercontent.com"
