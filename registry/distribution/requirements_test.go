package distribution_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// Every requirement in docs/reference/distribution.md names tests, and all of them exist.
// Every endpoint and every error code of the protocol is in some requirement.
func TestRequirementsAreTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "distribution.md"))
	must(t, err)
	name := regexp.MustCompile("`([a-z/]+\\.)?((?:Test|Fuzz)[A-Za-z0-9]+)`")
	tests := make(map[string]map[string]bool)
	rows := 0
	for i, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| section |") {
			continue
		}
		rows++
		if len(cells) != 3 {
			t.Errorf("line %d has %d cells, want 3", i+1, len(cells))
			continue
		}
		named := name.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("line %d: no test for: %s", i+1, cells[1])
		}
		for _, m := range named {
			folder := "registry/distribution"
			if m[1] != "" {
				folder = strings.TrimSuffix(m[1], ".")
			}
			if tests[folder] == nil {
				tests[folder] = testsIn(t, filepath.Join(root, filepath.FromSlash(folder)))
			}
			if !tests[folder][m[2]] {
				t.Errorf("line %d: %s has no test %s", i+1, folder, m[2])
			}
		}
	}
	if rows < 60 {
		t.Errorf("the page has %d requirements", rows)
	}
	endpoints := strings.Fields("end-1 end-2 end-3 end-4a end-4b end-5 end-6 end-7 end-8a end-8b end-9 end-10 end-11 end-12a end-12b end-13")
	for _, word := range append(endpoints, specCodes...) {
		if !regexp.MustCompile(`\b` + word + `\b`).Match(page) {
			t.Errorf("the page does not name %s", word)
		}
	}
}

// testsIn lists the tests and fuzz targets of a folder.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	must(t, err)
	found := make(map[string]bool)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}
