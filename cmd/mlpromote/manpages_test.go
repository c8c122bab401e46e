package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/manpages"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// writtenPages writes the manual pages and gives each by its file's name.
func writtenPages(t *testing.T) (*cobra.Command, map[string]string) {
	t.Helper()
	u := ui.NewPlain("mlpromote", io.Discard, io.Discard)
	a := &program.App{UI: u, Getenv: func(string) string { return "" }}
	root, dir := root(a), filepath.Join(t.TempDir(), "man", "man1")
	if err := manpages.Write(root, "1.2.3", time.Unix(1_700_000_000, 0), dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]string)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[e.Name()] = string(text)
	}
	return root, pages
}

// Each visible verb has a page, and what is hidden has none.
func TestManualPages(t *testing.T) {
	t.Parallel()
	root, pages := writtenPages(t)
	_, again := writtenPages(t)
	visible := 0
	var visit func(c *cobra.Command, hidden bool)
	visit = func(c *cobra.Command, hidden bool) {
		hidden = hidden || c.Hidden || c.Name() == "help"
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, ok := pages[name]
		switch {
		case hidden && ok:
			t.Errorf("%s is a page of a hidden verb", name)
		case hidden:
		case !ok:
			t.Errorf("%s is missing", name)
		case !strings.Contains(page, `"Nov 2023" "mlpromote 1.2.3" "mlpromote"`):
			t.Errorf("%s begins with %.120q, want date and version in it", name, page)
		case again[name] != page:
			t.Errorf("%s has other bytes when it is written again", name)
		}
		if !hidden {
			visible++
		}
		for _, child := range c.Commands() {
			visit(child, hidden)
		}
	}
	visit(root, false)
	if visible < 50 || len(pages) != visible {
		t.Errorf("%d pages for %d visible verbs, want one for each of 50 or more", len(pages), visible)
	}
	if page := pages["mlpromote.1"]; !strings.Contains(page, ".EX\nmlpromote init model.onnx     write mlpromote.yaml\n") {
		t.Errorf("the lines of the overview do not stand for themselves:\n%s", page)
	}
}

// A released program is without what renders the pages.
func TestManualPagesAreNotLinked(t *testing.T) {
	t.Parallel()
	for _, build := range []struct {
		tags   string
		linked bool
	}{{"", false}, {"manpages", true}} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", build.tags, ".").Output()
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.Split(string(out), "\n")
		for _, name := range []string{"github.com/spf13/cobra/doc", "github.com/cpuguy83/go-md2man/v2/md2man", "github.com/russross/blackfriday/v2"} {
			if slices.Contains(packages, name) != build.linked {
				t.Errorf("with the tags %q, %s is linked: %v, want %v", build.tags, name, !build.linked, build.linked)
			}
		}
	}
}
