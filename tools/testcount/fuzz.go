package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a fuzz target.
type target struct{ pkg, name string }

// fuzzAll runs every fuzz target of the packages, one after the other, for d each.
func fuzzAll(ctx context.Context, t *tally, packages []string, d time.Duration) error {
	targets, err := findTargets(ctx, packages)
	if err != nil {
		return err
	}
	failed := 0
	for _, f := range targets {
		if err := ctx.Err(); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+f.name+"$", "-fuzztime="+d.String(), "-fuzzminimizetime=20x", f.pkg)
		output, err := cmd.CombinedOutput()
		if err != nil && !ranOutOfTime(string(output)) {
			failed++
			t.fail(f.pkg+" "+f.name+" (fuzzing)", string(output))
			continue
		}
		fmt.Fprintf(t.out, "fuzz %s %s\n", f.pkg, f.name)
	}
	fmt.Fprintf(t.out, "\n%d fuzz targets ran for %v each, %d found something\n", len(targets), d, failed)
	return nil
}

// ranOutOfTime reports whether a run failed only because its time ended while an
// input was running: a slow machine then gets "context deadline exceeded" for a
// verdict. A true finding always leaves an input behind.
func ranOutOfTime(output string) bool {
	return strings.Contains(output, "context deadline exceeded") && !strings.Contains(output, "Failing input written")
}

// findTargets reads the test files of the packages, which is far quicker than to
// compile them all for go test -list.
func findTargets(ctx context.Context, packages []string) ([]target, error) {
	args := append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, packages...)
	list := exec.CommandContext(ctx, "go", args...)
	var said strings.Builder
	list.Stderr = &said
	listing, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w\n%s", err, said.String())
	}
	var targets []target
	for d := json.NewDecoder(strings.NewReader(string(listing))); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return targets, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			names, err := fuzzNames(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				targets = append(targets, target{p.ImportPath, name})
			}
		}
	}
}

// fuzzNames are the functions of a file that go test takes for fuzz targets.
func fuzzNames(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") && f.Type.Params.NumFields() == 1 {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}
