package main_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	decisionName   = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	decisionNumber = regexp.MustCompile(`^\d+\. `)
)

// TestDecisionsAreListed compares the index of docs/decisions with the pages: each page has one line with its number
// and title, under a topic, in order of numbers within the topic.
func TestDecisionsAreListed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "decisions")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{} // the line of the index for each page, by file name
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
		number := strings.TrimLeft(name[1], "0")
		pages[fmt.Sprintf("- %s: [%s](%s)", number, title, e.Name())] = number
	}
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range indexProblems(string(index), pages) {
		t.Error(problem)
	}
}

// TestDecisionIndexProblems checks that each kind of mistake in the index is found.
func TestDecisionIndexProblems(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"- 1: [A](0001-a.md)": "1", "- 2: [B](0002-b.md)": "2"}
	for index, want := range map[string]string{
		"## T\n- 1: [A](0001-a.md)\n- 2: [B](0002-b.md)\n":                      "",
		"## T\n- 2: [B](0002-b.md)\n## U\n- 1: [A](0001-a.md)\n":                "",
		"## T\n- 1: [A](0001-a.md)\n":                                           "is not listed",
		"## T\n- 1: [A](0001-a.md)\n- 2: [B](0002-b.md)\n- 2: [B](0002-b.md)\n": "is listed 2 times",
		"## T\n- 1: [A](0001-a.md)\n- 2: [B](0002-b.md)\n- 3: [C](0003-c.md)\n": "matches no page",
		"## T\n- 2: [B](0002-b.md)\n- 1: [A](0001-a.md)\n":                      "out of order",
		"- 1: [A](0001-a.md)\n## T\n- 2: [B](0002-b.md)\n":                      "under no topic",
		"## T\n- 1: [Another title](0001-a.md)\n- 2: [B](0002-b.md)\n":          "is not listed",
	} {
		got := strings.Join(indexProblems(index, pages), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("of %q: got %q, want %q in it", index, got, want)
		}
	}
}

// indexProblems returns the mistakes of an index. pages has the line that each page needs, and its number.
func indexProblems(index string, pages map[string]string) []string {
	var problems []string
	listed := map[string]int{}
	topic, last := "", 0
	for line := range strings.Lines(index) {
		line = strings.TrimSuffix(line, "\n")
		if name, found := strings.CutPrefix(line, "## "); found {
			topic, last = name, 0
			continue
		}
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		listed[line]++
		if topic == "" {
			problems = append(problems, fmt.Sprintf("%q is under no topic", line))
		}
		number, known := pages[line]
		if !known {
			problems = append(problems, fmt.Sprintf("%q matches no page", line))
			continue
		}
		n, _ := strconv.Atoi(number)
		if n < last {
			problems = append(problems, fmt.Sprintf("%q is out of order under %q", line, topic))
		}
		last = n
	}
	for _, line := range slices.Sorted(maps.Keys(pages)) {
		switch listed[line] {
		case 0:
			problems = append(problems, fmt.Sprintf("%q is not listed", line))
		case 1:
		default:
			problems = append(problems, fmt.Sprintf("%q is listed %d times", line, listed[line]))
		}
	}
	return problems
}
