package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

const docs = "../../docs/"

// The page of toolchains has the table that their rows make.
func TestPageHasTheRows(t *testing.T) {
	t.Parallel()
	d, err := openDocument(docs + "toolchains.md")
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.rows(rowsTable)
	if err != nil {
		t.Fatal(err)
	}
	_, want, err := toolchains()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/toolchains.md does not have the table of the rows: run make generate\n%s", strings.Join(want, "\n"))
	}
}

// Every toolchain has a page, every page a toolchain, and no page is long.
func TestPagesOfToolchains(t *testing.T) {
	t.Parallel()
	const most = 3000 // words
	pages, err := filepath.Glob(docs + "toolchains/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, page := range pages {
		have = append(have, strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	slices.Sort(have)
	want := slices.Sorted(slices.Values(drivers.Names()))
	if !slices.Equal(have, want) {
		t.Errorf("docs/toolchains has pages of %v, want %v", have, want)
	}
	for _, page := range append(pages, docs+"toolchains.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if words := len(strings.Fields(string(text))); words > most {
			t.Errorf("%s has %d words, want at most %d", page, words, most)
		}
	}
}

// The tables of what was measured have their places in the pages of the toolchains whose rows they have.
func TestPagesHavePlaces(t *testing.T) {
	t.Parallel()
	var p program
	for _, name := range drivers.Names() {
		p.tools = append(p.tools, tool{Name: name})
	}
	for _, measured := range []table{p.engines(), p.sources(), p.installs()} {
		for _, r := range measured.rows {
			d, err := openDocument(docs + "toolchains/" + r.tool + ".md")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.rows(measured.name); err != nil {
				t.Fatalf("%s: %v", r.title, err)
			}
		}
	}
}
