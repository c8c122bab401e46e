package environments_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/policy"
)

// withApprovals is a file whose prod has a rule, in line 5 from column 16.
func withApprovals(rule string) string {
	return `version: 1
registry: local
environments:
  staging:
  prod: {from: staging, approvals: ` + rule + `}
trust:
  - {key: a.pub, roles: [approver], resources: ["oci://local/"]}
  - {key: b.pub, roles: [approver], resources: ["oci://local/prod/vision/"]}
  - {key: c.pub, roles: [approver], state: retired, since: 2026-11-01T10:00:00Z, resources: ["oci://local/prod/"]}
  - {key: d.pub, roles: [builder], resources: ["oci://local/"]}
  - {key: e.pub, roles: [approver], resources: ["oci://local/staging/"]}
`
}

func TestApprovalsRead(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	group := func(name string, count int, keys ...string) policy.ApproverGroup {
		return policy.ApproverGroup{Name: name, Count: count, Keys: keys}
	}
	for rule, want := range map[string]policy.ApprovalRule{
		"1":   {Count: 1},
		"100": {Count: 100},
		"{groups: {z: {keys: [a.pub]}, b: {keys: [b.pub, c.pub], count: 2}}}": {Count: 3, Groups: []policy.ApproverGroup{group("z", 1, "a.pub"), group("b", 2, "b.pub", "c.pub")}},
		"{count: 5, groups: {z: {keys: [a.pub]}}}":                            {Count: 5, Groups: []policy.ApproverGroup{group("z", 1, "a.pub")}},
		"{count: 2, attested: {max: 1, people: [{token: jane, keys: [a.pub]}]}}": {Count: 2, Attested: &policy.AttestedRule{Max: 1,
			People: []policy.ListedPerson{{Token: "jane", Keys: []string{"a.pub"}}}}},
		`{groups: {z: {keys: [a.pub]}}, attested: {max: 1, accepts: true, people: [{issuer: "https://id.example.com", subject: "248289", group: z}]}}`: {Count: 1,
			Groups: []policy.ApproverGroup{group("z", 1, "a.pub")}, Attested: &policy.AttestedRule{Max: 1, Accepts: true,
				People: []policy.ListedPerson{{Issuer: "https://id.example.com", Subject: "248289", Group: "z"}}}},
	} {
		text := withApprovals(rule)
		got, err := environments.Parse("environments.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if diff := cmp.Diff(want, got.List[1].Approvals); diff != "" {
			t.Errorf("%s\n%s", rule, diff)
		}
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s by the schema: %v", rule, err)
		}
		if p := got.List[1].Policy(); p.Approvals.Count != want.Count {
			t.Errorf("%s: the policy asks for %d", rule, p.Approvals.Count)
		}
	}
}

func TestApprovalsProblems(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for name, c := range map[string]struct {
		text, want string
		shape      bool // whether the schema accepts it: it does not see what other lines say
	}{
		"none":           {withApprovals("0"), "5:36 approvals: count 0 asks for nothing: remove the key", false},
		"less than none": {withApprovals("-1"), "5:36 approvals: count -1: want 1 to 100", false},
		"a hundred":      {withApprovals("101"), "5:36 approvals: count 101: want 1 to 100", false},
		"a word":         {withApprovals("two"), `5:36 found "two": want a whole number`, false},
		"a list":         {withApprovals("[a.pub]"), "5:36 approvals is a list: want a number, or a mapping with count and groups", false},
		"no groups":      {withApprovals("{count: 2}"), `5:36 key "groups" is missing`, false},
		"empty groups":   {withApprovals("{count: 2, groups: {}}"), "5:55 groups is a mapping: want a mapping from name to count and keys", false},
		"a misspelled":   {withApprovals("{groups: {a: {key: [a.pub]}}}"), `5:50 unknown key "key" (did you mean "keys"?): want count, keys`, false},
		"too small": {withApprovals("{count: 1, groups: {a: {keys: [a.pub]}, b: {keys: [b.pub]}}}"),
			"5:36 approvals: count 1 is less than the 2 that the groups ask for together", true},
		"too few keys":  {withApprovals("{groups: {a: {count: 2, keys: [a.pub]}}}"), "5:36 approvals: group a asks for 2 approvals of 1 key: want 1 to 1", true},
		"in two groups": {withApprovals("{groups: {a: {keys: [a.pub]}, b: {keys: [a.pub]}}}"), "5:36 approvals: key a.pub is in the groups a and b: want each key in one group", true},
		"a builder's key": {withApprovals("{groups: {a: {keys: [a.pub, d.pub]}}}"),
			"5:64 key d.pub of group a is not trusted as approver for oci://local/prod/: add it to trust:, or remove it here", true},
		"of staging": {withApprovals("{groups: {a: {keys: [e.pub]}}}"),
			"5:57 key e.pub of group a is not trusted as approver for oci://local/prod/: add it to trust:, or remove it here", true},
		"an unknown key": {withApprovals("{groups: {a: {keys: [x.pub]}}}"),
			"5:57 key x.pub of group a is not trusted as approver for oci://local/prod/: add it to trust:, or remove it here", true},
		"attested alone":  {withApprovals("{attested: {max: 1, people: [{token: a}]}}"), `5:36 key "groups" is missing`, false},
		"no maximum":      {withApprovals("{count: 1, attested: {people: [{token: a}]}}"), `5:57 key "max" is missing`, false},
		"a maximum of 0":  {withApprovals("{count: 1, attested: {max: 0, people: [{token: a}]}}"), "5:36 approvals: attested: max 0: want 1 to 1, as many as are needed", false},
		"a large maximum": {withApprovals("{count: 1, attested: {max: 2, people: [{token: a}]}}"), "5:36 approvals: attested: max 2: want 1 to 1, as many as are needed", true},
		"no people":       {withApprovals("{count: 1, attested: {max: 1, people: []}}"), "5:36 approvals: attested: people is empty: want those whose approvals count", false},
		"no subject": {withApprovals("{count: 1, attested: {max: 1, people: [{issuer: \"https://id.example.com\"}]}}"),
			"5:36 approvals: attested: person 1: want an issuer and a subject, or the name of a token", false},
		"a token of an issuer": {withApprovals("{count: 1, attested: {max: 1, people: [{issuer: \"https://id.example.com\", subject: a, token: b}]}}"),
			"5:36 approvals: attested: person 1: want an issuer and a subject, or the name of a token", false},
		"an issuer by http": {withApprovals("{count: 1, attested: {max: 1, people: [{issuer: \"http://id.example.com\", subject: a}]}}"),
			`5:36 approvals: attested: issuer "http://id.example.com": want https://HOST[/PATH], as its tokens have it in iss`, false},
		"a pattern": {withApprovals("{count: 1, attested: {max: 1, people: [{token: \"ci-*\"}]}}"),
			"5:36 approvals: attested: token ci-*: want the exact text: patterns have no meaning here", false},
		"a person twice": {withApprovals("{count: 1, attested: {max: 1, people: [{token: a}, {token: a, keys: [a.pub]}]}}"), "5:36 approvals: attested: token a is listed twice", true},
		"a key of two": {withApprovals("{count: 1, attested: {max: 1, people: [{token: a, keys: [a.pub]}, {token: b, keys: [a.pub]}]}}"),
			"5:36 approvals: attested: key a.pub is listed for two people", true},
		"a group that is not": {withApprovals("{count: 1, attested: {max: 1, people: [{token: a, group: z}]}}"), `5:36 approvals: attested: token a: there is no group "z"`, true},
		"a key of nobody": {withApprovals("{count: 1, attested: {max: 1, people: [{token: a, keys: [x.pub]}]}}"),
			"5:93 key x.pub is in no entry of trust:: want a path as trust has it", true},
		"an attester with more roles": {withApprovals("1") + "  - {key: f.pub, roles: [attester, approver], resources: [\"oci://local/\"]}\n",
			`12:25 the role "attester" goes with no other: give the service's attester a key of its own`, false},
		"an attester in two entries": {withApprovals("1") + "  - {key: a.pub, roles: [attester], resources: [\"oci://local/\"]}\n",
			`12:11 key a.pub has the role "attester" in one entry and another role in another: give the service's attester a key of its own`, true},
		"without from": {"version: 1\nregistry: local\nenvironments:\n  staging: {approvals: 1}\n" + trustYAML,
			"4:3 environment staging: approvals has no effect without from, since builds write it directly", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := environments.Parse("environments.yaml", []byte(c.text))
			if diff := cmp.Diff(c.want, problems(t, err)); diff != "" {
				t.Errorf("%s\n%s", c.text, diff)
			}
			if err := validate(t, schema, c.text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}
