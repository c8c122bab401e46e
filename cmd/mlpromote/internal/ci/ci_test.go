package ci_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/ci"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// issuer is a CI's issuer of tokens on loopback.
type issuer struct {
	server *httptest.Server
	key    *ecdsa.PrivateKey
}

func startIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	inner := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: "ES256"}}}
	i := issuer{httptest.NewServer(inner), key}
	t.Cleanup(i.server.Close)
	inner.SetIssuer(i.server.URL)
	return i
}

// token signs claims beside those of every token; nil leaves one out.
func (i issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	all := map[string]any{"iss": i.server.URL, "aud": ci.Audience, "sub": "repo:team/models", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(i.key, "one", "ES256", string(text))
}

// variables are those of a job of GitHub, with others over them.
func variables(over map[string]string) func(string) string {
	return func(name string) string {
		if text, ok := over[name]; ok {
			return text
		}
		return map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "team/claimed", "GITHUB_TOKEN": "secret"}[name]
	}
}

// asking are the variables by which a job asks GitHub, which gives it a token.
func asking(t *testing.T, token string) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("audience") != ci.Audience {
			t.Errorf("got %s, want a question about a token for %s", r.URL, ci.Audience)
		}
		fmt.Fprintf(w, `{"value":%q}`, token)
	}))
	t.Cleanup(server.Close)
	return map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "/?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of-the-job"}
}

func over(all map[string]string, name, value string) map[string]string {
	all[name] = value
	return all
}

func TestJob(t *testing.T) {
	t.Parallel()
	i, other := startIssuer(t), startIssuer(t)
	good := i.token(t, map[string]any{"repository": "team/models", "run_id": "17", "actor": "a person", "email": "a@example.com", "sha": 5})
	claimed := map[string]string{"repository": "team/claimed"}
	said := &evidence.CIOrigin{Issuer: i.server.URL, Claims: map[string]string{"sub": "repo:team/models", "repository": "team/models", "run_id": "17"}}
	forAnother := "the token of GitHub: the token of " + i.server.URL + ` is refused: oidc: expected audience "mlpromote" got ["sigstore"]`
	for name, c := range map[string]struct {
		variables map[string]string
		want      *evidence.CIOrigin
		err       string // in the error, which has code invalid
	}{
		"no CI":           {map[string]string{"GITHUB_ACTIONS": ""}, nil, ""},
		"variables alone": {nil, &evidence.CIOrigin{Claimed: claimed, Unverified: "there is no token: MLPROMOTE_CI_TOKEN is not set"}, ""},
		"variables of GitLab": {map[string]string{"GITHUB_ACTIONS": "", "GITLAB_CI": "true", "CI_JOB_ID": "4"},
			&evidence.CIOrigin{Claimed: map[string]string{"job_id": "4"}, Unverified: "there is no token: MLPROMOTE_CI_TOKEN is not set"}, ""},
		"a token": {map[string]string{ci.TokenVariable: good},
			&evidence.CIOrigin{Issuer: i.server.URL, Claims: map[string]string{"sub": "repo:team/models", "repository": "team/models", "run_id": "17"}}, ""},
		"a token with a line end": {map[string]string{ci.TokenVariable: good + "\n", "GITHUB_ACTIONS": ""},
			&evidence.CIOrigin{Issuer: i.server.URL, Claims: map[string]string{"sub": "repo:team/models", "repository": "team/models", "run_id": "17"}}, ""},
		"a token for another service":  {map[string]string{ci.TokenVariable: i.token(t, map[string]any{"aud": "sigstore"})}, nil, "audience"},
		"an old token":                 {map[string]string{ci.TokenVariable: i.token(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})}, nil, "expired"},
		"a token of another key":       {map[string]string{ci.TokenVariable: other.token(t, map[string]any{"iss": i.server.URL})}, nil, "signature"},
		"a changed token":              {map[string]string{ci.TokenVariable: changed(good)}, nil, "signature"},
		"no token":                     {map[string]string{ci.TokenVariable: "secret"}, nil, "not a JWT"},
		"an issuer without encryption": {map[string]string{ci.TokenVariable: i.token(t, map[string]any{"iss": "http://ci.example.com"})}, nil, "no https URL"},
		"a token of a megabyte":        {map[string]string{ci.TokenVariable: strings.Repeat("a", 1<<20)}, nil, "bytes"},
		"GitHub is asked":              {asking(t, good), said, ""},
		"GitHub gives one for another service": {asking(t, i.token(t, map[string]any{"aud": "sigstore"})),
			&evidence.CIOrigin{Claimed: claimed, Unverified: forAnother}, ""},
		"GitHub gives none":                     {asking(t, ""), &evidence.CIOrigin{Claimed: claimed, Unverified: "GitHub answered without a token"}, ""},
		"another system has GitHub's variables": {over(asking(t, good), "GITHUB_ACTIONS", ""), nil, ""},
		"an issuer that is away": {map[string]string{ci.TokenVariable: i.token(t, map[string]any{"iss": "http://127.0.0.1:1"})},
			&evidence.CIOrigin{Claimed: claimed, Unverified: "the keys of http://127.0.0.1:1 could not be fetched"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ci.Job(t.Context(), variables(c.variables))
			if c.err != "" {
				if got != nil || !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %+v and error %v, want an error with %q and code %s", got, err, c.err, registry.CodeInvalid)
				}
				if err != nil && strings.Contains(err.Error(), good) {
					t.Errorf("the error shows the token: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// changed is a token whose claims are others than those that were signed.
func changed(token string) string {
	parts := strings.Split(token, ".")
	parts[1] = parts[1][:20] + map[bool]string{true: "B", false: "A"}[parts[1][20] == 'A'] + parts[1][21:]
	return strings.Join(parts, ".")
}

// The URL of a run comes from what each system sets, and from nothing that is no URL.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"GitHub":                   {map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "t/m", "GITHUB_RUN_ID": "7"}, "https://github.com/t/m/actions/runs/7"},
		"GitHub Enterprise Server": {map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://gh.example", "GITHUB_REPOSITORY": "t/m", "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "2"}, "https://gh.example/t/m/actions/runs/7/attempts/2"},
		"GitLab":                   {map[string]string{"GITLAB_CI": "true", "CI_JOB_URL": "https://gitlab.example/t/m/-/jobs/7"}, "https://gitlab.example/t/m/-/jobs/7"},
		"Jenkins":                  {map[string]string{"JENKINS_URL": "https://jenkins.example/", "BUILD_URL": "https://jenkins.example/job/m/7/"}, "https://jenkins.example/job/m/7/"},
		"Tekton":                   {map[string]string{"MLPROMOTE_CI_RUN_URL": "https://tekton.example/#/namespaces/ml/pipelineruns/m-7"}, "https://tekton.example/#/namespaces/ml/pipelineruns/m-7"},
		"no CI":                    {nil, ""},
		"a hostile one":            {map[string]string{"BUILD_URL": "https://x.example/\n::error::x"}, ""},
		"a script":                 {map[string]string{"GITLAB_CI": "true", "CI_JOB_URL": "javascript:alert(1)"}, ""},
	} {
		getenv := func(variable string) string { return c.variables[variable] }
		if got := ci.Run(getenv); got != c.want {
			t.Errorf("%s: run %q, want %q", name, got, c.want)
		}
		job, err := ci.Job(t.Context(), getenv)
		if err != nil || job.Run() != "" || job.ClaimedRun() != c.want {
			t.Errorf("%s: job %+v, error %v, want that it claims %q and proves nothing", name, job, err, c.want)
		}
	}
}
