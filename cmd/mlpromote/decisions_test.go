package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	decisionName   = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	decisionNumber = regexp.MustCompile(`^\d+\. `)
)

// TestDecisionsAreListed holds the index of docs/decisions against the pages: one line for each, in order, with its
// title, and nothing else.
func TestDecisionsAreListed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "decisions")
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range entries {
		name := decisionName.FindStringSubmatch(e.Name())
		if name == nil {
			if e.Name() != "README.md" {
				t.Errorf("%s is not named like a decision: want NNNN-some-words.md", e.Name())
			}
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(string(text), "\n")
		title = decisionNumber.ReplaceAllString(strings.TrimPrefix(title, "# "), "")
		want = append(want, fmt.Sprintf("- %s: [%s](%s)", strings.TrimLeft(name[1], "0"), title, e.Name()))
	}
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "- ") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	if got, want := strings.Join(got, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("docs/decisions/README.md lists\n%s\nwant\n%s", got, want)
	}
}
