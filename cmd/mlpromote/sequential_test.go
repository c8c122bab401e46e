package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestSequentialPackages holds the packages that `make test` runs without the race detector to the reason for
// that: they start no goroutine, and share nothing that needs a lock.
func TestSequentialPackages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(programtest.Root("Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^SEQUENTIAL +:= (.+)$`).FindSubmatch(text)
	if named == nil {
		t.Fatal("the Makefile has no line SEQUENTIAL :=")
	}
	for _, pkg := range strings.Fields(string(named[1])) {
		files, err := filepath.Glob(programtest.Root(pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: got %d files, error %v; want some", pkg, len(files), err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				checkSequential(t, path)
			}
		}
	}
}

func checkSequential(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if name := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(name, "sync") || strings.HasSuffix(name, "/errgroup") {
			t.Errorf("%s imports %s: take its package off SEQUENTIAL in the Makefile", path, name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			t.Errorf("%s starts a goroutine: take its package off SEQUENTIAL in the Makefile", path)
		}
		return true
	})
}
