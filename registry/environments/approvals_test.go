package environments_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
)

// withApprovals is a file whose prod has a rule, in line 5 from column 16.
func withApprovals(version, rule string) string {
	return version + `registry: local
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
	group := func(name string, count int, keys ...string) registry.ApproverGroup {
		return registry.ApproverGroup{Name: name, Count: count, Keys: keys}
	}
	for rule, want := range map[string]registry.ApprovalRule{
		"1":   {Count: 1},
		"100": {Count: 100},
		"{groups: {z: {keys: [a.pub]}, b: {keys: [b.pub, c.pub], count: 2}}}": {Count: 3, Groups: []registry.ApproverGroup{group("z", 1, "a.pub"), group("b", 2, "b.pub", "c.pub")}},
		"{count: 5, groups: {z: {keys: [a.pub]}}}":                            {Count: 5, Groups: []registry.ApproverGroup{group("z", 1, "a.pub")}},
	} {
		text := withApprovals("version: 2\n", rule)
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
	const v2 = "version: 2\n"
	for name, c := range map[string]struct {
		text, want string
		shape      bool // whether the schema accepts it: it does not see what other lines say
	}{
		"in a file of version 1": {withApprovals("", "2"), "4:25 key \"approvals\" needs version 2 of the file: add the line \"version: 2\" at its top\n" +
			"8:37 key \"state\" needs version 2 of the file: add the line \"version: 2\" at its top\n8:53 key \"since\" needs version 2 of the file: add the line \"version: 2\" at its top", false},
		"none":            {withApprovals(v2, "0"), "5:36 approvals: count 0 asks for nothing: remove the key", false},
		"less than none":  {withApprovals(v2, "-1"), "5:36 approvals: count -1: want 1 to 100", false},
		"a hundred":       {withApprovals(v2, "101"), "5:36 approvals: count 101: want 1 to 100", false},
		"a word":          {withApprovals(v2, "two"), `5:36 found "two": want a whole number`, false},
		"a list":          {withApprovals(v2, "[a.pub]"), "5:36 approvals is a list: want a number, or a mapping with count and groups", false},
		"no groups":       {withApprovals(v2, "{count: 2}"), `5:36 key "groups" is missing`, false},
		"empty groups":    {withApprovals(v2, "{count: 2, groups: {}}"), "5:55 groups is a mapping: want a mapping from name to count and keys", false},
		"a misspelled":    {withApprovals(v2, "{groups: {a: {key: [a.pub]}}}"), `5:50 unknown key "key" (did you mean "keys"?): want count, keys`, false},
		"too small":       {withApprovals(v2, "{count: 1, groups: {a: {keys: [a.pub]}, b: {keys: [b.pub]}}}"), "5:36 approvals: count 1 is less than the 2 that the groups ask for together", true},
		"too few keys":    {withApprovals(v2, "{groups: {a: {count: 2, keys: [a.pub]}}}"), "5:36 approvals: group a asks for 2 approvals of 1 key: want 1 to 1", true},
		"in two groups":   {withApprovals(v2, "{groups: {a: {keys: [a.pub]}, b: {keys: [a.pub]}}}"), "5:36 approvals: key a.pub is in the groups a and b: want each key in one group", true},
		"a builder's key": {withApprovals(v2, "{groups: {a: {keys: [a.pub, d.pub]}}}"), "5:64 key d.pub of group a is not trusted as approver for oci://local/prod/: add it to trust:, or remove it here", true},
		"of staging":      {withApprovals(v2, "{groups: {a: {keys: [e.pub]}}}"), "5:57 key e.pub of group a is not trusted as approver for oci://local/prod/: add it to trust:, or remove it here", true},
		"an unknown key":  {withApprovals(v2, "{groups: {a: {keys: [x.pub]}}}"), "5:57 key x.pub of group a is not trusted as approver for oci://local/prod/: add it to trust:, or remove it here", true},
		"without from":    {"version: 2\nregistry: local\nenvironments:\n  staging: {approvals: 1}\n" + trust, "4:3 environment staging: approvals has no effect without from, since builds write it directly", true},
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
