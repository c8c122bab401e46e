package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	const (
		head     = "version: 1\nregistry: local\nenvironments:\n  staging:\n  prod: {from: staging}\ntrust:\n"
		attester = `  - {key: two.pub, roles: [attester], resources: ["oci://local/"]}` + "\n"
		all      = `  - {key: one.pub, roles: [builder, verifier, promoter], resources: ["oci://local/"]}` + "\n"
	)
	approving := func(rule string) string {
		return strings.Replace(head, "from: staging", "from: staging, approvals: "+rule, 1)
	}
	approver := func(key string) string {
		return "  - {key: " + key + `, roles: [approver], resources: ["oci://local/"]}` + "\n"
	}
	for name, c := range map[string]struct {
		text string
		want []string // beginnings of findings, after "note: " if it is no problem
	}{
		"no problem": {head + all, nil},
		"a missing key": {head + all + `  - {key: none.pub, roles: [approver], resources: ["oci://local/"]}` + "\n",
			[]string{"the file of key none.pub is missing"}},
		"a missing key that is revoked": {head + all + `  - {key: none.pub, state: revoked, since: 2026-11-21T09:00:00Z, roles: [verifier], resources: ["oci://local/"]}` + "\n",
			[]string{"key none.pub is revoked and its file is missing, so its statements cannot be verified"}},
		"a verifier whose key is missing": {head + strings.Replace(all, ", verifier", "", 1) + `  - {key: none.pub, roles: [verifier], resources: ["oci://local/"]}` + "\n",
			[]string{"the file of key none.pub is missing", "nothing can be promoted to prod: it requires parity"}},
		"people without an attester": {approving("{count: 1, attested: {max: 1, people: [{token: ana}]}}") + all,
			[]string{"approvals: attested: of prod has no effect: no existing trusted key has the role attester for oci://local/prod/",
				"nothing can be promoted to prod: it requires 1 approval, but 0 keys can approve there"}},
		"people who can approve": {approving("{count: 1, attested: {max: 1, people: [{token: ana}]}}") + all + attester, nil},
		"too few people": {approving("{count: 2, attested: {max: 1, people: [{token: ana}, {token: ben}]}}") + all + attester,
			[]string{"nothing can be promoted to prod: it requires 2 approvals, but 0 keys and 1 person can approve there"}},
		"an approver of nothing in particular": {head + all + `  - {key: two.pub, roles: [approver], resources: ["oci://local/prod/vision/digits"]}` + "\n", nil},
		"one key in one state, twice":          {head + all + `  - {key: copy.pub, roles: [approver], resources: ["oci://local/"]}` + "\n", nil},
		"two keys in two states":               {head + all + `  - {key: two.pub, state: revoked, since: 2026-11-21T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n", nil},
		"one key under two names, separate roles": {strings.Replace(head, "from: staging", "from: staging, require: [signature, parity, separate-roles]", 1) +
			strings.Replace(all, ", verifier", "", 1) + `  - {key: copy.pub, roles: [verifier], resources: ["oci://local/"]}` + "\n",
			[]string{"nothing can be promoted to prod: it requires separate-roles"}},
		"no verifier": {head + strings.Replace(all, ", verifier", "", 1),
			[]string{"nothing can be promoted to prod: it requires parity, but no existing trusted key has the role verifier for oci://local/prod/"}},
		"a verifier for some models is enough": {head + strings.Replace(all, ", verifier", "", 1) +
			`  - {key: two.pub, roles: [verifier], resources: ["oci://local/prod/vision/"]}` + "\n", nil},
		"a verifier of staging is not": {head + strings.Replace(all, ", verifier", "", 1) +
			`  - {key: two.pub, roles: [verifier], resources: ["oci://local/staging/"]}` + "\n",
			[]string{"nothing can be promoted to prod: it requires parity"}},
		"the only promoter is revoked": {head + strings.Replace(all, ", promoter", "", 1) +
			`  - {key: two.pub, state: revoked, since: 2026-11-21T09:00:00Z, roles: [promoter], resources: ["oci://local/"]}` + "\n",
			[]string{"nothing can be promoted to prod: a promoter must sign each promotion"}},
		"a resource elsewhere": {head + all + `  - {key: two.pub, roles: [approver], resources: ["oci://acme/"]}` + "\n",
			[]string{"resource oci://acme/ of two.pub covers no environment"}},
		"one key, separate roles": {strings.Replace(head, "from: staging", "from: staging, require: [signature, parity, separate-roles]", 1) + all,
			[]string{"nothing can be promoted to prod: it requires separate-roles"}},
		"two keys, separate roles": {strings.Replace(head, "from: staging", "from: staging, require: [signature, parity, separate-roles]", 1) + all +
			`  - {key: two.pub, roles: [verifier], resources: ["oci://local/"]}` + "\n", nil},
		"an identity": {head + all + `  - {identity: {issuer: https://example.com, subject: x}, roles: [builder], resources: ["oci://local/"]}` + "\n",
			[]string{"note: identity https://example.com x has no effect: roots names no sigstore root"}},
		"retired in the future": {head + all + `  - {key: two.pub, state: retired, since: 2026-11-23T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n",
			[]string{"note: key two.pub retires in the future, on 2026-11-23T09:00:00Z"}},
		"revoked in the future": {head + all + `  - {key: two.pub, state: revoked, since: 2026-11-23T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n",
			[]string{"note: key two.pub is revoked from a time in the future"}},
		"node types": {head + all + `  - {key: two.pub, nodeTypes: [g6.xlarge], roles: [verifier], resources: ["oci://local/"]}` + "\n",
			[]string{"note: two.pub counts as verifier for failing reports alone"}},
		"one key retired and revoked": {head + all +
			`  - {key: two.pub, state: retired, since: 2026-11-20T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n" +
			`  - {key: copy2.pub, state: revoked, since: 2026-11-21T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n",
			[]string{"key copy2.pub is the same key as two.pub, but has another state"}},
		"one key in two states": {head + all + `  - {key: copy.pub, state: revoked, since: 2026-11-21T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n",
			[]string{"key copy.pub is the same key as one.pub, but has another state"}},
		"two approvals of one key": {approving("2") + all + approver("two.pub"),
			[]string{"nothing can be promoted to prod: it requires 2 approvals, but 1 key can approve there"}},
		"two approvals of one key under two names": {approving("2") + all + approver("two.pub") + approver("copy2.pub"),
			[]string{"nothing can be promoted to prod: it requires 2 approvals, but 1 key can approve there"}},
		"two approvals of two keys": {approving("2") + all + approver("two.pub") + approver("copy.pub"), nil},
		"no approver": {approving("1") + all,
			[]string{"nothing can be promoted to prod: it requires 1 approval, but 0 keys can approve there"}},
		"a group whose key is revoked": {approving("{count: 1, groups: {a: {keys: [two.pub]}}}") + all + approver("copy.pub") +
			`  - {key: two.pub, state: revoked, since: 2026-11-21T09:00:00Z, roles: [approver], resources: ["oci://local/"]}` + "\n",
			[]string{"nothing can be promoted to prod: group a must give 1 approval, but 0 keys of it can approve"}},
		"one key in two groups under two names": {approving("{groups: {a: {keys: [two.pub]}, b: {keys: [copy2.pub]}}}") + all + approver("two.pub") + approver("copy2.pub") + approver("copy.pub"),
			[]string{"key copy2.pub of group b in prod is also in group a, under another name",
				"nothing can be promoted to prod: group b must give 1 approval, but 0 keys of it can approve"}},
		"a group that can approve": {approving("{groups: {a: {keys: [two.pub]}}}") + all + approver("two.pub"), nil},
		"no key for prod": {head + strings.Replace(all, "oci://local/", "oci://local/staging/", 1), []string{
			"nothing can be promoted to prod: it requires signature", "nothing can be promoted to prod: it requires parity",
			"nothing can be promoted to prod: a promoter must sign"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.write(t, "environments.yaml", c.text)
			s, err := f.files().Read()
			if err != nil {
				t.Fatal(err)
			}
			f.write(t, "copy.pub", string(must(s.Key("one.pub"))))
			if key, err := s.Key("two.pub"); err == nil {
				f.write(t, "copy2.pub", string(key))
			}
			if s, err = f.files().Read(); err != nil {
				t.Fatal(err)
			}
			found := s.Findings(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
			if len(found) != len(c.want) {
				t.Fatalf("found %+v, want %q", found, c.want)
			}
			for i, want := range c.want {
				want, note := strings.CutPrefix(want, "note: ")
				if !strings.HasPrefix(found[i].Text, want) {
					t.Errorf("found %q, want %q", found[i].Text, want)
				}
				if found[i].Problem == note {
					t.Errorf("a problem: %t, want %t for %q", found[i].Problem, !note, found[i].Text)
				}
				if found[i].Problem != (found[i].Fix != "") {
					t.Errorf("fix %q for a problem: %t; want one for each problem, and for no note: %q", found[i].Fix, found[i].Problem, found[i].Text)
				}
			}
		})
	}
}

// If the environments do not trust the promoter's key, the finding has the line that trusts
// it.
func TestPromoterFindings(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	read := func(promoter registry.Digest) config.Snapshot {
		t.Helper()
		files := f.files()
		files.Promoter, files.PromoterFile = promoter, "keys/promoter.pub"
		s, err := files.Read()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := read("")
	if found := s.PromoterFindings(); len(found) != 0 {
		t.Errorf("without a key: found %+v, want nothing", found)
	}
	id, err := keyID(must(s.Key("two.pub")))
	if err != nil {
		t.Fatal(err)
	}
	if found := read(digest.NewDigestFromEncoded(digest.SHA256, id)).PromoterFindings(); len(found) != 0 {
		t.Errorf("with a trusted key: found %+v, want nothing", found)
	}
	unknown := read(digest.FromString("unknown"))
	found := unknown.PromoterFindings()
	if len(found) != 1 || !found[0].Problem || !strings.HasPrefix(found[0].Text, "nothing can be promoted to prod: ") {
		t.Fatalf("with an unknown key: found %+v, want that nothing can be promoted to prod", found)
	}
	_, line, ok := strings.Cut(found[0].Fix, "the line ")
	if !ok {
		t.Fatalf("fix %q, want the line to add", found[0].Fix)
	}
	f.key(t, "promoter.pub")
	f.write(t, "environments.yaml", chain+"trust:\n"+one+strings.Replace(line, "keys/", "", 1)+"\n")
	again := read("")
	if id, err = keyID(must(again.Key("promoter.pub"))); err != nil {
		t.Fatal(err)
	}
	if found := read(digest.NewDigestFromEncoded(digest.SHA256, id)).PromoterFindings(); len(found) != 0 {
		t.Errorf("with the line added: found %+v, want nothing", found)
	}
}

// A rule that matches a CI job by a pattern for its sub is a warning that names the claims to match.
func TestSubjectPatternsAreWarnedOf(t *testing.T) {
	t.Parallel()
	const (
		github = "https://token.actions.githubusercontent.com"
		claims = ": repository_id, repository_owner_id, job_workflow_ref, environment, runner_environment"
		two    = "repo:OWNER@ID/NAME@ID:"
	)
	for name, c := range map[string]struct {
		issuer, match string
		want          []string // texts in the only finding; none: there is no finding
	}{
		"names": {github, `sub: "repo:acme/*:environment:production"`,
			[]string{"rule 1 of " + github + ` matches sub by the pattern "repo:acme/*:environment:production"`, two, claims}},
		"IDs":                   {github, `sub: "repo:acme@1/vision@*:ref:refs/heads/main"`, []string{two, claims}},
		"beside an ID":          {github, `repository_id: "456", sub: "*:environment:production"`, []string{claims}},
		"a server of one's own": {"https://github.example.com/_services/token", `sub: "repo:acme/*:ref:refs/heads/main"`, []string{two, claims}},
		"GitLab": {"https://gitlab.com", `sub: "project_path:ml/*:ref_type:branch:ref:main"`,
			[]string{": project_id, namespace_id, ci_config_ref_uri, environment, runner_environment"}},
		"the exact sub":         {github, `sub: "repo:acme@1/vision@5:environment:production"`, nil},
		"claims":                {github, `repository_id: "456", environment: production, ref: "refs/heads/*"`, nil},
		"accounts of a cluster": {"https://kubernetes.example.com", `sub: "system:serviceaccount:serving:*"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.write(t, "access.yaml", "issuers:\n  - issuer: "+c.issuer+"\n    audience: a\n    rules:\n      - match: {"+c.match+
				"}\n        grants: [{allow: [read], environment: staging, model: \"**\"}]\n")
			read, err := f.files().Read()
			if err != nil {
				t.Fatal(err)
			}
			var found []config.Finding
			for _, finding := range read.Findings(time.Now()) {
				if strings.HasPrefix(finding.Text, "access.yaml: ") {
					found = append(found, finding)
				}
			}
			if len(found) != min(len(c.want), 1) {
				t.Fatalf("got findings %v, want %d", found, min(len(c.want), 1))
			}
			for _, text := range c.want {
				if found[0].Problem || !strings.Contains(found[0].Text, text) {
					t.Errorf("got %+v, want a note with %q", found[0], text)
				}
			}
		})
	}
}

// A process that signs as an identity promotes only where an identity is trusted as promoter.
func TestPromoterIdentityFindings(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	files := f.files()
	files.PromoterIdentity = true
	s, err := files.Read()
	if err != nil {
		t.Fatal(err)
	}
	found := s.PromoterFindings()
	if len(found) != 1 || !found[0].Problem || !strings.Contains(found[0].Text, "signs promotions as an identity, and no identity is trusted as promoter") {
		t.Errorf("found %+v, want that nothing can be promoted to prod", found)
	}
}
