package policy_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/policy"
)

// A job is taken for a proposal by what started it, or by its ref. A rule for a branch leaves such jobs out.
func TestProposedJobs(t *testing.T) {
	t.Parallel()
	const gitHub, gitLab = "https://token.actions.githubusercontent.com", "https://gitlab.com"
	branch := map[string]string{"ref": "refs/heads/main"}
	for name, c := range map[string]struct {
		issuer    string
		rule, job map[string]string
		allowed   bool
	}{
		"a push":                         {gitHub, branch, map[string]string{"ref": "refs/heads/main", "event_name": "push"}, true},
		"a request with its base's ref":  {gitHub, branch, map[string]string{"ref": "refs/heads/main", "event_name": "pull_request_target"}, false},
		"a run after a request":          {gitHub, branch, map[string]string{"ref": "refs/heads/main", "event_name": "workflow_run"}, false},
		"a comment":                      {gitHub, branch, map[string]string{"ref": "refs/heads/main", "event_name": "issue_comment"}, false},
		"GitHub that says nothing":       {gitHub, branch, map[string]string{"ref": "refs/heads/main"}, false},
		"another that says nothing":      {gitLab, branch, map[string]string{"ref": "main"}, true},
		"a child of an unknown pipeline": {gitLab, map[string]string{"ref_protected": "true"}, map[string]string{"pipeline_source": "parent_pipeline"}, false},
		"a merge request by its ref":     {gitLab, map[string]string{"ref_path": "**"}, map[string]string{"ref_path": "refs/merge-requests/7/head", "ref": "main", "pipeline_source": "api"}, false},
		"a request that is asked for":    {gitHub, map[string]string{"ref": "refs/pull/**"}, map[string]string{"ref": "refs/pull/7/merge", "event_name": "pull_request"}, true},
		"a trigger that is asked for":    {gitHub, map[string]string{"ref": "refs/heads/main", "event_name": "workflow_run"}, map[string]string{"event_name": "workflow_run"}, true},
		"an environment":                 {gitHub, map[string]string{"ref": "refs/heads/main", "environment": "production"}, map[string]string{"event_name": "pull_request_target"}, true},
		"a subject with a branch":        {gitHub, map[string]string{"sub": "repo:a/b:ref:refs/heads/main"}, map[string]string{"event_name": "pull_request_target"}, false},
		"no branch":                      {gitHub, map[string]string{"repository_id": "7"}, map[string]string{"event_name": "pull_request"}, true},
	} {
		if got := policy.AllowsProposedJob(c.issuer, c.rule, func(claim string) string { return c.job[claim] }); got != c.allowed {
			t.Errorf("%s: allowed is %t, want %t", name, got, c.allowed)
		}
	}
}
