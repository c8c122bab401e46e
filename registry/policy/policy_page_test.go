package policy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/policy"
)

// TestRequirementsOfPage holds environments.md against what a policy can ask for: neither
// names something that the other does not know.
func TestRequirementsOfPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/environments.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `environments.NAME.require` \\|(.*)\\|$").FindStringSubmatch(string(page))
	if row == nil {
		t.Fatal("environments.md has no row for require")
	}
	var documented []string
	for _, m := range regexp.MustCompile("`([a-z, -]+)`").FindAllStringSubmatch(row[1], -1) {
		documented = append(documented, strings.Split(m[1], ", ")...)
	}
	_, known, _ := strings.Cut(policy.Policy{Require: []string{"?"}}.Validate().Error(), "want one of ")
	want := strings.Split(known, ", ")
	slices.Sort(documented)
	slices.Sort(want)
	if !slices.Equal(documented, want) {
		t.Errorf("environments.md documents %q, want %q", documented, want)
	}
}
