package evidence_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	const github = "https://token.actions.githubusercontent.com"
	commit := strings.Repeat("a", 40)
	for name, c := range map[string]struct {
		origin evidence.Origin
		want   string
	}{
		"clean": {evidence.Origin{Git: evidence.GitOrigin{Commit: commit, Repository: "https://example.com/m", State: evidence.GitClean}}, "commit " + commit + " of https://example.com/m"},
		"dirty": {evidence.Origin{Git: evidence.GitOrigin{Commit: commit, State: evidence.GitDirty, Changed: []string{"a", "b", "c", "d"}, ChangedCount: 9}},
			"commit " + commit + " with 9 changed files: a, b, c, ..."},
		"few changes": {evidence.Origin{Git: evidence.GitOrigin{Commit: commit, State: evidence.GitDirty, Changed: []string{"a", "b"}, ChangedCount: 2}},
			"commit " + commit + " with 2 changed files: a, b"},
		"a count without names": {evidence.Origin{Git: evidence.GitOrigin{Commit: commit, State: evidence.GitDirty, ChangedCount: 9}}, "commit " + commit + " with 9 changed files"},
		"state not known":       {evidence.Origin{Git: evidence.GitOrigin{Commit: commit}}, "commit " + commit + ", changed or not"},
		"no repository":         {evidence.Origin{Git: evidence.GitOrigin{Missing: "git is not installed"}}, "not known: git is not installed"},
		"a job": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x"}, CI: &evidence.CIOrigin{Issuer: github,
			Claims: map[string]string{"repository": "t/m", "run_id": "7", "run_attempt": "2"}}},
			"not known: x; https://github.com/t/m/actions/runs/7/attempts/2"},
		"a job of GitLab": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x"},
			CI: &evidence.CIOrigin{Issuer: "https://gitlab.com", Claims: map[string]string{"project_path": "t/m", "job_id": "7"}}},
			"not known: x; https://gitlab.com/t/m/-/jobs/7"},
		"a claimed job": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x"}, CI: &evidence.CIOrigin{Claimed: map[string]string{"repository": "t/m", "run_id": "7"}}},
			"not known: x; claims to be a CI job (not verified)"},
		"a claimed job with its URL": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x"}, CI: &evidence.CIOrigin{Claimed: map[string]string{"run_url": "https://jenkins.example/job/m/7/"}}},
			"not known: x; claims to be the CI job https://jenkins.example/job/m/7/ (not verified)"},
		"claims of GitHub by another issuer": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x"},
			CI: &evidence.CIOrigin{Issuer: "https://example.com", Claims: map[string]string{"repository": "t/m", "run_id": "7"}}},
			"not known: x; a job of https://example.com"},
		"claims without an issuer": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x"}, CI: &evidence.CIOrigin{Claims: map[string]string{"repository": "t/m", "run_id": "7"}}},
			"not known: x; claims to be a CI job (not verified)"},
		"an escape sequence": {evidence.Origin{Git: evidence.GitOrigin{Missing: "x\x1b[2J"}}, `not known: x\u001b[2J`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.origin.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			text, err := json.Marshal(map[string]any{"buildDefinition": map[string]any{"internalParameters": map[string]any{"origin": c.origin}}})
			if err != nil {
				t.Fatal(err)
			}
			read := evidence.Statement{PredicateType: evidence.PredicateProvenance, Predicate: text}.Origin()
			if read == nil || read.String() != c.want {
				t.Errorf("read from provenance: got %v, want %q", read, c.want)
			}
			if other := (evidence.Statement{PredicateType: evidence.PredicateSign, Predicate: text}).Origin(); other != nil {
				t.Errorf("read from another statement: got %v, want nothing", other)
			}
		})
	}
}

// Only the issuers of GitHub lead to runs there, and only an address that can be one is shown as one.
func TestRun(t *testing.T) {
	t.Parallel()
	claims := map[string]string{"repository": "t/m", "run_id": "7"}
	for issuer, want := range map[string]string{
		"https://token.actions.githubusercontent.com":              "https://github.com/t/m/actions/runs/7",
		"https://token.actions.githubusercontent.com/octo":         "https://github.com/t/m/actions/runs/7",
		"https://token.actions.octo.ghe.com":                       "https://octo.ghe.com/t/m/actions/runs/7",
		"https://github.octo.example/_services/token":              "https://github.octo.example/t/m/actions/runs/7",
		"https://token.actions.githubusercontent.com.evil.example": "",
		"https://token.actions.evil.example":                       "",
		"http://token.actions.githubusercontent.com":               "",
		"https://evil.example":                                     "",
		"":                                                         "",
	} {
		if got := (&evidence.CIOrigin{Issuer: issuer, Claims: claims}).Run(); got != want {
			t.Errorf("issuer %q: run %q, want %q", issuer, got, want)
		}
	}
	hostile := &evidence.CIOrigin{Issuer: "https://gitlab.example", Claims: map[string]string{"project_path": "t/m](javascript:x)", "job_id": "7"}}
	if got := hostile.Run(); got != "" {
		t.Errorf("a hostile project leads to %q", got)
	}
	var none *evidence.CIOrigin
	if none.Run() != "" || none.ClaimedRun() != "" {
		t.Error("no job has a run")
	}
	for text, good := range map[string]bool{
		"https://ci.example/1": true, "http://ci.example:8080/#/ns/a?b=c": true, "javascript:alert(1)": false, "ftp://ci.example/": false, "//ci.example/": false,
		"https://user:pass@ci.example/": false, "https://ci.example/\n::error::x": false, "https://ci.example/a b": false, "https://ci.example/)[x](": false,
		"https://ci.example/" + strings.Repeat("a", 2000): false,
	} {
		if got := (&evidence.CIOrigin{Claimed: map[string]string{evidence.ClaimRun: text}}).ClaimedRun(); (got == text) != good || !good && got != "" {
			t.Errorf("claimed run %.60q: %q", text, got)
		}
	}
}
