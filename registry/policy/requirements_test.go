package policy_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/readiness"
)

// Each row says in words what it requires, how it is asked for and who can meet it by which command. The page of environments lists it.
func TestRequirementRows(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/environments.md")
	if err != nil {
		t.Fatal(err)
	}
	mark := map[bool]string{true: "yes", false: "-"}
	seen := make(map[string]bool)
	for _, row := range policy.RequirementRows() {
		t.Run(row.Name, func(t *testing.T) {
			if seen[row.Name] {
				t.Error("it is there twice")
			}
			seen[row.Name] = true
			if row.Words == "" || row.Per == "" || row.Listed == row.Asked {
				t.Errorf("%+v: want words, what it is judged of, and one way in which it is asked for", row)
			}
			if (row.Command == "") == (row.NoCommand == "") {
				t.Errorf("command %q, reason for none %q: want one of them", row.Command, row.NoCommand)
			}
			if row.Skippable && row.Objects {
				t.Error("it can be skipped, though it is unmet only if something speaks against the release")
			}
			unmet := []policy.Requirement{{Name: row.Name}, {Name: row.Name}}
			hints := policy.RequirementHints("prod", unmet)
			if len(hints) != min(len(row.Hint), 1) || strings.Contains(strings.Join(hints, ""), "%") {
				t.Errorf("hints %q, want one if there is one, without verbs of a format", hints)
			}
			unmet[0].Unshown = true
			if command := unmet[0].Command("staging/m:1", "prod"); strings.Contains(command, "%") || (command == "") != (row.Command == "") {
				t.Errorf("command %q, want that of the row, %q, filled in", command, row.Command)
			}
			for _, item := range row.Items {
				if !slices.Contains(readiness.ReadinessNames(), item) {
					t.Errorf("the checklist has no item %q", item)
				}
			}
			line := fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", row.Name, row.Words, row.Per, cmp.Or(string(row.Role), "-"), mark[row.Listed], mark[row.Skippable])
			if !strings.Contains(string(page), line+"\n") {
				t.Errorf("docs/reference/environments.md lacks the line:\n%s", line)
			}
		})
	}
	if got := policy.Requirements(); len(got) != len(seen) {
		t.Errorf("%q are listed, and there are %d rows", got, len(seen))
	}
	known := policy.Policy{Require: []string{"unknown"}}.Validate().Error()
	for _, row := range policy.RequirementRows() {
		if strings.Contains(known, row.Name) != row.Listed {
			t.Errorf("%s: environments.yaml can list it is %t, and the refusal of an unknown one is %q", row.Name, row.Listed, known)
		}
	}
}

// Who has to act follows from the role whose evidence is missing. What speaks against a release awaits nobody.
func TestRolesOfRequirements(t *testing.T) {
	t.Parallel()
	const builder, verifier, approver = evidence.RoleBuilder, evidence.RoleVerifier, evidence.RoleApprover
	for name, c := range map[string]struct {
		of      evidence.Role // empty: it needs no evidence
		awaited evidence.Role // while it is unmet and has no evidence
		more    evidence.Role // the same with evidence that does not meet it
	}{
		policy.RequireSignature:            {builder, builder, builder},
		policy.RequireProvenance:           {builder, builder, builder},
		policy.RequireReproducibleBytes:    {builder, builder, ""},
		policy.RequireReproducibleSemantic: {builder, builder, ""},
		"ci-job":                           {builder, builder, ""},
		policy.RequireParity:               {verifier, verifier, verifier},
		policy.RequireRecordedCases:        {verifier, verifier, verifier},
		"coverage":                         {"", verifier, verifier},
		"reports":                          {"", verifier, verifier},
		"approvals":                        {approver, approver, approver},
		"no-quarantine":                    {"", "", ""},
		"unknown":                          {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if role, ok := policy.RequirementRole(name); role != c.of || ok != (c.of != "") {
				t.Errorf("needs evidence of %q, %t; want %q", role, ok, c.of)
			}
			for _, req := range []policy.Requirement{{Name: name}, {Name: name, Evidence: []registry.Digest{"sha256:a"}}} {
				want := c.awaited
				if len(req.Evidence) > 0 {
					want = c.more
				}
				// Whether it awaits somebody matters; the role is that of the evidence.
				if role, ok := req.AwaitedRole(); ok != (want != "") || ok && role != want {
					t.Errorf("with the evidence %q it awaits %q, %t; want %q", req.Evidence, role, ok, want)
				}
				req.Refused = true
				if role, ok := req.AwaitedRole(); ok {
					t.Errorf("refused, it awaits %q", role)
				}
			}
		})
	}
}

// A failing report and a quarantine reach every environment that has the engine; an approval stays where it was given.
func TestWhatSpreads(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string]bool{
		evidence.PredicateParity: true, evidence.PredicatePerformance: true, evidence.PredicateQuarantine: true,
		evidence.PredicateApproval: false, evidence.PredicateProvenance: false, evidence.PredicateVSA: false,
		evidence.PredicateBreakGlass: false, evidence.PredicateTestResult: false, evidence.PredicateSign: false,
	} {
		if got := evidence.Spreads(predicate); got != want {
			t.Errorf("%s spreads: %t, want %t", predicate, got, want)
		}
	}
}
