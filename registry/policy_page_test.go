package registry_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// TestRequirementsOfPage holds environments.md against what a policy can ask for: neither
// names something that the other does not know.
func TestRequirementsOfPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reference/environments.md")
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
	_, known, _ := strings.Cut(registry.Policy{Require: []string{"?"}}.Validate().Error(), "want one of ")
	want := strings.Split(known, ", ")
	slices.Sort(documented)
	slices.Sort(want)
	if !slices.Equal(documented, want) {
		t.Errorf("environments.md documents %q, want %q", documented, want)
	}
}

// TestNoPageOffersApprovals: an approver's key signs quarantines, and no policy asks for anything
// else of it.
func TestNoPageOffersApprovals(t *testing.T) {
	t.Parallel()
	if slices.ContainsFunc(registry.Requirements(), func(name string) bool { return strings.Contains(name, "approv") }) {
		t.Skip("a policy can ask for approvals now")
	}
	for _, page := range []string{"README.md", "docs/concepts.md", "docs/threat-model.md", "docs/how-to/access.md", "docs/how-to/recall.md", "docs/reference/environments.md"} {
		text, err := os.ReadFile("../" + page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(text)), "approval") {
			t.Errorf("%s speaks of approvals, which nothing asks for", page)
		}
	}
}
