package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longestSentence is the number of words that a sentence of a page may have.
const longestSentence = 40

var (
	// banned are turns that hide who does something, or that give a user a sex.
	banned      = regexp.MustCompile(`(?i)\b(nobody|none of|he|his|him)\b`)
	codeSpan    = regexp.MustCompile("`[^`]*`|\"[^\"\n]*\"") // or a quoted word
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	sentenceEnd = regexp.MustCompile(`[.:?!]\)?(\s|$)`)
	blockStart  = regexp.MustCompile(`^\s*(- |\* |\d+\. |#)`)
)

// TestProse: the pages have short sentences and no banned turns outside code. Sentences in
// tables may be longer, since a table row is one line of keywords.
func TestProse(t *testing.T) {
	t.Parallel()
	pages := prosePages(t, "../..")
	if len(pages) < 25 {
		t.Fatalf("found %d pages, want at least 25", len(pages))
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paragraphs(string(text)) {
			checkProse(t, page, p)
		}
	}
}

// prosePages returns the Markdown files of the documentation, without the changelog and the
// decisions, which are records of their time.
func prosePages(t *testing.T, root string) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/how-to/*.md", "docs/tutorials/*.md", "docs/reference/*.md", "docs/toolchains/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			page, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			if page != "CHANGELOG.md" {
				pages = append(pages, page)
			}
		}
	}
	return pages
}

// paragraph is the text of a page between empty lines, without code; a list item and a table row
// are paragraphs of their own.
type paragraph struct {
	lines []string
	start int // number of the first line
	table bool
}

func paragraphs(text string) []paragraph {
	var all []paragraph
	fenced, open := false, false
	for i, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		table := strings.HasPrefix(line, "|")
		switch {
		case fence || fenced || strings.TrimSpace(line) == "":
			fenced, open = fenced != fence, false
		case !open || table || blockStart.MatchString(line):
			all, open = append(all, paragraph{[]string{line}, i + 1, table}), !table
		default:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		}
	}
	return all
}

func checkProse(t *testing.T, page string, p paragraph) {
	t.Helper()
	text := plainText(strings.Join(p.lines, "\n"))
	for i, line := range strings.Split(text, "\n") {
		if turn := banned.FindString(line); turn != "" {
			t.Errorf("%s:%d: has %q: say who does what", page, p.start+i, turn)
		}
	}
	if p.table {
		return
	}
	for offset := 0; offset < len(text); {
		end := len(text)
		if at := sentenceEnd.FindStringIndex(text[offset:]); at != nil {
			end = offset + at[1]
		}
		if words := len(strings.Fields(text[offset:end])); words > longestSentence {
			line := p.start + strings.Count(text[:offset], "\n")
			t.Errorf("%s:%d: a sentence has %d words, want at most %d: %.60q...", page, line, words, longestSentence, text[offset:end])
		}
		offset = end
	}
}

// plainText replaces each code span by one word and drops the targets of links. Newlines stay.
func plainText(text string) string {
	keepLines := func(word string) func(string) string {
		return func(s string) string { return word + strings.Repeat("\n", strings.Count(s, "\n")) }
	}
	text = codeSpan.ReplaceAllStringFunc(text, keepLines("code"))
	return linkTarget.ReplaceAllStringFunc(text, keepLines("]"))
}
