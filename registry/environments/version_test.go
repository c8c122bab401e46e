package environments_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// allTrust has trust entries with every key.
const allTrust = `version: 1
registry: local
environments:
  staging:
  prod: {from: staging}
trust:
  - {key: keys/builder.pub, roles: [builder], resources: ["oci://local/"]}
  - {key: keys/new.pub, state: trusted, from: 2026-11-01T10:00:00+01:00, until: 2027-11-01T00:00:00Z, roles: [verifier], resources: ["oci://local/"], nodeTypes: [g6.xlarge, c7i/large]}
  - {key: keys/old.pub, state: retired, since: 2026-11-01T10:00:00+01:00, roles: [verifier, approver], resources: ["oci://local/"]}
  - {key: keys/lost.pub, state: revoked, since: 2026-11-02T00:00:00Z, roles: [promoter], resources: ["oci://local/prod/"]}
  - identity:
      issuer: https://token.actions.githubusercontent.com
      subject: repo:acme/vision:environment:production
      claims: {repository_id: "1", job_workflow_ref: acme/ci/.github/workflows/build.yml@refs/heads/main}
    roles: [builder]
    resources: ["oci://local/staging/"]
`

func TestTrustEntries(t *testing.T) {
	t.Parallel()
	got, err := environments.Parse("environments.yaml", []byte(allTrust))
	if err != nil {
		t.Fatal(err)
	}
	local := []string{"oci://local/"}
	want := []trust.TrustEntry{
		{Key: "keys/builder.pub", Roles: []evidence.Role{evidence.RoleBuilder}, Resources: local},
		{Key: "keys/new.pub", State: evidence.KeyTrusted, Roles: []evidence.Role{evidence.RoleVerifier}, Resources: local,
			Window:    evidence.Window{From: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC), Until: time.Date(2027, 11, 1, 0, 0, 0, 0, time.UTC)},
			NodeTypes: []string{"g6.xlarge", "c7i/large"}},
		{Key: "keys/old.pub", State: evidence.KeyRetired, RetiredAt: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC),
			Roles: []evidence.Role{evidence.RoleVerifier, evidence.RoleApprover}, Resources: local},
		{Key: "keys/lost.pub", State: evidence.KeyRevoked, RevokedAt: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC),
			Roles: []evidence.Role{evidence.RolePromoter}, Resources: []string{"oci://local/prod/"}},
		{Identity: &trust.Identity{
			Issuer: "https://token.actions.githubusercontent.com", Subject: "repo:acme/vision:environment:production",
			Claims: map[string]string{"repository_id": "1", "job_workflow_ref": "acme/ci/.github/workflows/build.yml@refs/heads/main"},
		}, Roles: []evidence.Role{evidence.RoleBuilder}, Resources: []string{"oci://local/staging/"}},
	}
	if diff := cmp.Diff(want, got.Trust); diff != "" {
		t.Error(diff)
	}
}

// A file without a version means the same as one with version 1.
func TestFileVersion(t *testing.T) {
	t.Parallel()
	text := "registry: local\nenvironments: {staging: {}}\n" + trustYAML
	without, err := environments.Parse("environments.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	with, err := environments.Parse("environments.yaml", []byte("version: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	with.Digest = without.Digest
	if diff := cmp.Diff(without, with); diff != "" {
		t.Error(diff)
	}
}

func TestTrustProblems(t *testing.T) {
	t.Parallel()
	file := func(version, entry string) string {
		return version + "registry: local\nenvironments: {staging: {}}\ntrust:\n  - {" + entry + `, roles: [verifier], resources: ["oci://local/"]}` + "\n"
	}
	v1 := func(entry string) string { return file("version: 1\n", entry) }
	const (
		github = "https://token.actions.githubusercontent.com"
		aTime  = "want a time such as 2026-11-21T09:00:00Z"
	)
	for name, c := range map[string]struct{ text, want string }{
		"a newer version": {file("version: 2\n", "key: k"), "1:10 version 2 of the file: this program knows 1"},
		"version as text": {file("version: \"1\"\n", "key: k"), `1:10 found "1": want a whole number`},
		"no such bound":   {v1("key: k, from: soon"), `5:20 from "soon": ` + aTime},
		"an empty bound":  {v1("key: k, until: ''"), `5:21 until "": ` + aTime},
		"bound at year 1": {v1("key: k, from: 0001-01-01T00:00:00Z"), `5:20 from "0001-01-01T00:00:00Z": ` + aTime},
		"an empty window": {v1("key: k, from: 2026-11-21T09:00:00Z, until: 2026-11-21T10:00:00+01:00"),
			"5:49 until is not after from, so nothing would count: to end trust in a key, set its state"},
		"two windows of a key": {v1("key: k, until: 2026-11-20T09:00:00Z") + "  - {key: k, roles: [approver], resources: [\"oci://local/\"]}\n",
			"6:11 key k has another window in an earlier entry: want the same from and until in all entries of a key"},
		"neither":              {v1("state: trusted"), `5:5 key "key" is missing`},
		"both":                 {v1("key: k, identity: {issuer: https://example.com, subject: x}"), "5:24 the entry has both a key and an identity: want one of them"},
		"unknown key":          {v1("key: k, sate: revoked"), `5:14 unknown key "sate" (did you mean "state"?): want key, identity, state, since, from, until, roles, resources, nodeTypes`},
		"unknown state":        {v1("key: k, state: revokd"), `5:21 unknown state "revokd" (did you mean "revoked"?): want one of trusted, retired, revoked`},
		"no time":              {v1("key: k, state: retired"), `5:21 key "since" is missing: the time from which the key is retired; ` + aTime},
		"no such time":         {v1("key: k, state: retired, since: yesterday"), `5:37 since "yesterday": ` + aTime},
		"time for trusted":     {v1("key: k, state: trusted, since: 2026-11-21T09:00:00Z"), "5:37 since has no meaning for a trusted key: it belongs to the states retired and revoked"},
		"time without a state": {v1("key: k, since: 2026-11-21T09:00:00Z"), "5:21 since has no meaning for a trusted key: it belongs to the states retired and revoked"},
		"two times of a key": {v1("key: k, state: revoked, since: 2026-11-20T09:00:00Z") +
			"  - {key: k, state: revoked, since: 2026-11-21T09:00:00Z, roles: [approver], resources: [\"oci://local/\"]}\n",
			"6:11 key k has another state in an earlier entry: want the same state and time in all entries of a key"},
		"two states of a key": {v1("key: k") + "  - {key: k, state: revoked, since: 2026-11-21T09:00:00Z, roles: [approver], resources: [\"oci://local/\"]}\n",
			"6:11 key k has another state in an earlier entry: want the same state and time in all entries of a key"},
		"no node types":        {v1("key: k, nodeTypes: []"), "5:25 nodeTypes is empty: remove the key to let reports of every node type count"},
		"node type twice":      {v1("key: k, nodeTypes: [a, a]"), `5:29 node type "a" is here twice`},
		"issuer without https": {v1("identity: {issuer: http://example.com, subject: x}"), `5:25 issuer "http://example.com": want https://HOST[/PATH], as its tokens have it in iss`},
		"everybody":            {v1("identity: {issuer: https://example.com}"), "5:16 the identity covers every user of the issuer: want a subject or claims"},
		"a pattern":            {v1("identity: {issuer: https://example.com, subject: 'a*'}"), `5:55 "a*": want the exact text: patterns have no meaning in an identity`},
		"a pattern for jobs": {v1("identity: {issuer: " + github + ", subject: 'repo:acme@1/*:environment:production', claims: {repository_owner_id: '1'}}"),
			`5:79 "repo:acme@1/*:environment:production": want the exact text: patterns have no meaning in an identity; to cover several jobs, name some of these claims in place of the subject: repository_id, repository_owner_id, job_workflow_ref, environment, runner_environment`},
		"unknown claim": {v1("identity: {issuer: " + github + ", claims: {repository_di: '1'}}"),
			`5:79 unknown key "repository_di" (did you mean "repository_id"?): want repository_id, repository_owner_id, repository, job_workflow_ref, runner_environment, project_id, namespace_id, project_path, ci_config_ref_uri, environment, ref, email`},
		"number for a claim": {v1("identity: {issuer: " + github + ", claims: {repository_id: 1}}"), `5:94 found "1": want text, so put it in quotes: "1"`},
		"empty claim":        {v1("identity: {issuer: https://example.com, subject: x, claims: {ref: ''}}"), "5:72 claim ref is empty: want the text that it must have"},
		"only names": {v1("identity: {issuer: " + github + ", claims: {repository: acme/vision}}"),
			"5:16 " + github +
				" issues tokens to everybody, and names there can change owner: want one of repository_id, repository_owner_id among the claims"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := environments.Parse("environments.yaml", []byte(c.text))
			if diff := cmp.Diff(c.want, problems(t, err)); diff != "" {
				t.Errorf("%s\n%s", c.text, diff)
			}
		})
	}
	text := "version: 1\nregistry: local\nenvironments: {staging: {}}\ntrust:\n  - {key: k, nodeTypes: [a], roles: [builder], resources: [\"oci://local/\"]}\n"
	_, err := environments.Parse("environments.yaml", []byte(text))
	if diff := cmp.Diff(`5:25 nodeTypes says whose reports count, but the entry does not have the role "verifier"`, problems(t, err)); diff != "" {
		t.Error(diff)
	}
}

// A publisher has a key of its own in every way of writing it.
func TestPublisher(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nregistry: local\nenvironments:\n  staging:\ntrust:\n"
	const alone = "without another role: whoever takes another key must not say who is trusted"
	key := func(file, roles string) string {
		return "  - {key: " + file + ", roles: [" + roles + "], resources: [\"oci://local/\"]}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"a key of its own": {head + key("a.pub", "publisher") + key("b.pub", "promoter"), ""},
		"a promoter's":     {head + key("a.pub", "publisher, promoter"), "6:25 a publisher has a key of its own, " + alone},
		"in two entries":   {head + key("a.pub", "promoter") + key("a.pub", "publisher"), "7:25 a publisher has a key of its own, " + alone},
		"the other way":    {head + key("a.pub", "publisher") + key("a.pub", "promoter"), "7:25 a publisher has a key of its own, " + alone},
		"an identity": {head + "  - {identity: {issuer: \"https://ci.example\", subject: x}, roles: [publisher], resources: [\"oci://local/\"]}\n",
			"6:67 a publisher has a key of its own, " + alone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := environments.Parse("environments.yaml", []byte(c.text))
			got := ""
			if err != nil {
				got = problems(t, err)
			}
			if got != c.want {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

// A trust file says whom it trusts, or whose trust bundles it follows.
func TestLoadTrustFollows(t *testing.T) {
	t.Parallel()
	const v1 = "version: 1\nregistry: local\n"
	for name, c := range map[string]struct{ text, want string }{
		"follows": {v1 + "follow: {publishers: [keys/a.pub, /b.pub], state: state}\n", ""},
		"neither": {v1, `1:1 key "trust" is missing, or "follow"`},
		"both":    {v1 + "follow: {publishers: [a.pub], state: s}\n" + trustYAML, "4:1 trust stands beside follow: want one of them, since trust comes with the bundles that are followed"},
		"roots too": {v1 + "follow: {publishers: [a.pub], state: s}\nroots: [{sigstore: x}]\n",
			"4:1 roots stands beside follow: want one of them, since trust comes with the bundles that are followed"},
		"nobody":         {v1 + "follow: {publishers: [], state: s}\n", "3:22 publishers is empty: want the path of the public key of a publisher"},
		"no path":        {v1 + "follow: {publishers: [\"\"], state: s}\n", "3:23 want the path of a public key in PEM"},
		"no state":       {v1 + "follow: {publishers: [a.pub]}\n", "3:9 key \"state\" is missing"},
		"an empty state": {v1 + "follow: {publishers: [a.pub], state: \"\"}\n", "3:38 want the path of a folder, which remembers what was accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "trust.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := environments.LoadTrust(path)
			text := ""
			if err != nil {
				text = strings.ReplaceAll(problems(t, err), path+":", "")
			}
			if text != c.want {
				t.Errorf("problems %q, want %q", text, c.want)
			}
			if want := (&environments.Follow{Publishers: []string{"keys/a.pub", "/b.pub"},
				State: filepath.Join(filepath.Dir(path), "state")}); c.want == "" && !cmp.Equal(got.Follow, want) {
				t.Errorf("follows %+v, want %+v", got.Follow, want)
			}
		})
	}
}
