package oidc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/storage"
)

const good = `issuers:
  - issuer: https://token.actions.githubusercontent.com
    audience: https://registry.example.com
    principal: "github:{repository}@{ref}"
    rules:
      - match: {repository: acme/vision, ref: refs/heads/main}
        grants:
          - {allow: [read, push], environment: staging, model: "vision/**"}
          - {allow: [read], environment: prod, model: "vision/**"}
      - match: {repository_owner: acme, environment: production}
        grants: [{allow: [promote], environment: prod, model: "**"}]
  - issuer: https://gitlab.example.com
    audience: mlpromote
    rules:
      - match: {project_path: "ml/*", ref_protected: "true"}
        grants: [{allow: [read], environment: "*", model: "ml/**"}]
`

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := oidc.Parse("access.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := oidc.Issuer{
		URL: "https://token.actions.githubusercontent.com", Audience: "https://registry.example.com", Principal: "github:{repository}@{ref}",
		Rules: []oidc.Rule{
			{Match: map[string]string{"repository": "acme/vision", "ref": "refs/heads/main"}, Grants: []storage.Grant{
				{Permissions: []storage.Permission{"read", "push"}, Environment: "staging", Model: "vision/**"},
				{Permissions: []storage.Permission{"read"}, Environment: "prod", Model: "vision/**"},
			}},
			{Match: map[string]string{"repository_owner": "acme", "environment": "production"}, Grants: []storage.Grant{
				{Permissions: []storage.Permission{"promote"}, Environment: "prod", Model: "**"}}},
		},
	}
	if diff := cmp.Diff(want, c.Issuers[0]); diff != "" || len(c.Issuers) != 2 {
		t.Errorf("%d issuers, difference (-want +got):\n%s", len(c.Issuers), diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"no issuers":      {good, "issuers: []\n", "1:10: issuers is empty"},
		"unknown key":     {"audience: mlpromote", "audiense: mlpromote", `13:5: unknown key "audiense" (did you mean "audience"?)`},
		"plain http":      {"https://gitlab.example.com", "http://gitlab.example.com", "12:13: issuer \"http://gitlab.example.com\": want https://HOST[/PATH]"},
		"no URL":          {"https://gitlab.example.com", "gitlab", "12:13: issuer \"gitlab\""},
		"twice":           {"https://gitlab.example.com", "https://token.actions.githubusercontent.com", "12:13: issuer https://token.actions.githubusercontent.com is here twice"},
		"no audience":     {"audience: mlpromote", `audience: ""`, "13:15: audience is empty"},
		"name of a token": {`"github:{repository}@{ref}"`, `"token:{repository}"`, `4:16: principal "token:{repository}": want a prefix other than token and oidc`},
		"no prefix":       {`"github:{repository}@{ref}"`, `"{repository}"`, `4:16: principal "{repository}"`},
		"an open brace":   {`"github:{repository}@{ref}"`, `"github:{repository"`, `4:16: principal`},
		"same prefix":     {"audience: mlpromote\n", "audience: mlpromote\n    principal: \"github:{sub}\"\n", `14:16: principal "github:{sub}": names of another issuer begin the same way`},
		"no CA":           {"audience: mlpromote\n", "audience: mlpromote\n    ca: missing.pem\n", "14:9: ca: open"},
		"no PEM":          {"audience: mlpromote\n", "audience: mlpromote\n    ca: access.yaml\n", "want certificates in PEM"},
		"everybody":       {`{project_path: "ml/*", ref_protected: "true"}`, "{}", "15:16: match is empty: it would admit every user"},
		"the world": {"{repository: acme/vision, ref: refs/heads/main}", "{ref: refs/heads/main}",
			"6:16: anyone can get a token from https://token.actions.githubusercontent.com, so the rule must name an owner: add repository: OWNER/NAME"},
		"any owner":         {"{repository: acme/vision, ref: refs/heads/main}", `{repository: "*/vision"}`, "must name an owner"},
		"any owner, by sub": {"{repository: acme/vision, ref: refs/heads/main}", `{sub: "repo:*/vision:ref:refs/heads/main"}`, "must name an owner"},
		"a broken pattern":  {"acme/vision", `"acme/["`, `6:29: repository "acme/["`},
		"stars in between":  {"acme/vision", `"**/vision"`, `repository "**/vision"`},
		"a bare truth":      {`ref_protected: "true"`, "ref_protected: true", `put it in quotes: "true"`},
		"no rules":          {good[strings.LastIndex(good, "    rules:"):], "    rules: []\n", "14:12: rules is empty"},
		"no grants":         {`grants: [{allow: [read], environment: "*", model: "ml/**"}]`, "grants: []", "16:17: grants is empty"},
		"no permission":     {`allow: [read], environment: "*"`, `allow: [], environment: "*"`, "16:18: grant for ml/** in *: no permissions"},
		"unknown":           {`allow: [read], environment: "*"`, `allow: [fly], environment: "*"`, `16:18: permission "fly"`},
		"no environment":    {`, environment: "*"`, "", `key "environment" is missing`},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "access.yaml")
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: nothing is replaced", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := oidc.Load(path)
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), path+":") || len(got.Issuers) != 0 && err == nil {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := oidc.Load(filepath.Join(t.TempDir(), "access.yaml")); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("no file: error %v, want CodeNotFound", err)
	}
	if _, err := oidc.Load(t.TempDir()); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a folder: error %v, want CodeInvalid", err)
	}
}

// A rule for an issuer from which anybody can get a token must name an owner.
func TestRulesNameAnOwner(t *testing.T) {
	t.Parallel()
	const github, gitlab = "https://token.actions.githubusercontent.com", "https://gitlab.com"
	for _, c := range []struct {
		issuer, match string
		good          bool
	}{
		{github, `sub: "repo:acme/vision:ref:refs/heads/main"`, true},
		{github, `sub: "repo:acme@1234/vision@5678:ref:refs/heads/main"`, true},
		{github, `sub: "repo:acme@*/vision@*:environment:production"`, true},
		{github, `sub: "repo:acme/*"`, true},
		{github, `sub: "repo:acme/**"`, true},
		{github, `sub: "repository_owner:acme:environment:*"`, true},
		{github, `sub: "repository_id:5678:environment:*"`, true},
		{github, `sub: "environment:production", repository_owner: acme`, true},
		{github, `repository: acme/vision`, true},
		{github, `sub: "environment:production"`, false},
		{github, `sub: "ref:refs/heads/main"`, false},
		{github, `sub: "event_name:push"`, false},
		{github, `sub: "ref_type:branch:ref:main"`, false},
		{github, `sub: "job_workflow_ref:acme/ci/.github/workflows/build.yml@refs/heads/main"`, false}, // anybody may call a public one
		{github, `sub: "environment:x:repository_owner:acme"`, false},                                  // the owner of any repository can choose its first part
		{github, `sub: "repo:*/vision:ref:refs/heads/main"`, false},
		{github, `sub: "repo:*@1234/vision@5678:ref:refs/heads/main"`, false},
		{github, `sub: "repo:@1234/vision"`, false},
		{github, `sub: "repo:ac?e/vision:ref:refs/heads/main"`, false},
		{github, `sub: "repo:"`, false},
		{github, `sub: "repo"`, false},
		{github, `sub: "repository_owner:*"`, false},
		{github, `sub: "repository_owner:acme*"`, false},
		{github, `sub: "**"`, false},
		{github, `actor: alice`, false},
		{gitlab, `sub: "project_path:acme/vision:ref_type:branch:ref:main"`, true},
		{gitlab, `sub: "project_path:acme/**"`, true},
		{gitlab, `sub: "project_id:42:ref_type:branch:ref:main"`, true},
		{gitlab, `project_path: "acme/*"`, true},
		{gitlab, `sub: "project_path:*/vision:ref_type:branch:ref:main"`, false},
		{gitlab, `sub: "ref_type:branch:ref:main"`, false},
		{gitlab, `sub: "repo:acme/vision:ref:refs/heads/main"`, false},
		{gitlab, `ref_protected: "true"`, false},
		{"https://accounts.google.com", `sub: "1234"`, true},
		{"https://accounts.google.com", `sub: "12*"`, false},
		{"https://gitlab.example.com", `sub: "ref_type:branch:ref:main"`, true}, // its tokens are for a company's own people
	} {
		_, err := oidc.Parse("access.yaml", []byte("issuers: [{issuer: '"+c.issuer+"', audience: x, rules: [{match: {"+c.match+
			"}, grants: [{allow: [read], environment: a, model: b}]}]}]"))
		if (err == nil) != c.good || err != nil && !strings.Contains(err.Error(), "must name an owner: add ") {
			t.Errorf("%s {%s}: error %v, want valid: %t", c.issuer, c.match, err, c.good)
		}
	}
}

// A file that is taken has rules that let somebody in, and never everybody.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("issuers: [{issuer: https://a.example, audience: x, rules: [{match: {sub: x}, grants: [{allow: [read], environment: a, model: b}]}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := oidc.Parse("access.yaml", []byte(text))
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Fatal(err)
			}
			return
		}
		for _, issuer := range c.Issuers {
			if issuer.Audience == "" || len(issuer.Rules) == 0 {
				t.Fatalf("%q gives %+v", text, issuer)
			}
			for _, r := range issuer.Rules {
				if len(r.Match) == 0 || len(r.Grants) == 0 {
					t.Fatalf("%q gives the rule %+v", text, r)
				}
				for _, g := range r.Grants {
					if err := g.Validate(); err != nil {
						t.Fatalf("%q gives %+v: %v", text, g, err)
					}
				}
			}
		}
	})
}
