package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pathOfPage     = regexp.MustCompile(`\b(?:cmd|docs|examples|migrations|pipeline|registry|signer|tools|validators)/[\w./-]*\w`)
	functionOfPage = regexp.MustCompile(`\b(\w+)\(\)`)
	functionOfCode = regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)`)
	packageRow     = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.+\\|$")
)

// TestArchitecture holds docs/architecture.md against the code: paths and functions that it
// names exist, and the table of packages has each package once.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	paths := pathOfPage.FindAllString(page, -1)
	calls := functionOfPage.FindAllStringSubmatch(page, -1)
	if len(paths) < 100 || len(calls) < 30 {
		t.Fatalf("found %d paths and %d functions, want at least 100 and 30: do the patterns of this test still fit the page?", len(paths), len(calls))
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("docs/architecture.md names %s, which does not exist", path)
		}
	}
	functions := functionsBelow(t, root)
	for _, call := range calls {
		if !functions[call[1]] {
			t.Errorf("docs/architecture.md names the function %s, which does not exist", call[0])
		}
	}
	_, table, _ := strings.Cut(page, "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := make(map[string]int)
	for _, row := range packageRow.FindAllStringSubmatch(table, -1) {
		rows[row[1]]++
	}
	packages := listImports(t, "CGO_ENABLED=1")
	for name := range packages {
		if rows[name] != 1 {
			t.Errorf("the table of packages in docs/architecture.md has %d lines for %s, want 1", rows[name], name)
		}
	}
	for name := range rows {
		if _, ok := packages[name]; !ok {
			t.Errorf("the table of packages in docs/architecture.md has a line for %s, which is not a package", name)
		}
	}
}

// functionsBelow returns the names of all functions and methods outside of tests.
func functionsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for _, folder := range []string{"cmd", "pipeline", "registry", "signer", "validators"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, found := range functionOfCode.FindAllSubmatch(source, -1) {
				names[string(found[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
