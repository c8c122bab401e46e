package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// code is one package without its tests and generated files.
type code struct {
	path  string // below the module: "registry/service"; "." for its root
	name  string
	files []file
	types *types.Package
	info  *types.Info
	fset  *token.FileSet
}

// file is one hand-written file of a package.
type file struct {
	name  string // "promote.go"
	lines int
	tree  *ast.File
}

// listed is what go list prints about a package.
type listed struct {
	ImportPath string
	Name       string
	Dir        string
	Export     string
	GoFiles    []string
	CgoFiles   []string
	DepOnly    bool
	Module     *struct{ Path string }
}

// load parses and checks the packages that match the patterns in a folder. Go's build cache has
// what they import, so load compiles whatever is missing there.
func load(ctx context.Context, dir string, patterns ...string) ([]code, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,CgoFiles,DepOnly,Module"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	var out, told bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &told
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, told.String())
	}
	exports := make(map[string]string)
	var packages []listed
	for decoder := json.NewDecoder(&out); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the answer of go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && !strings.HasSuffix(p.Name, "test") { // a package such as registrytest holds tests
			packages = append(packages, p)
		}
	}
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []code
	for _, p := range packages {
		c, err := check(fset, compiled, p)
		if err != nil {
			return nil, err
		}
		if len(c.files) > 0 {
			all = append(all, c)
		}
	}
	return all, nil
}

// check parses a package and resolves its names.
func check(fset *token.FileSet, compiled types.Importer, p listed) (code, error) {
	c := code{path: ".", name: p.Name, fset: fset}
	if p.Module != nil && p.ImportPath != p.Module.Path {
		c.path = strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
	}
	c.info = &types.Info{
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	var trees []*ast.File
	for _, name := range append(append([]string{}, p.GoFiles...), p.CgoFiles...) {
		path := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return code{}, err
		}
		tree, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return code{}, err
		}
		trees = append(trees, tree)
		if !ast.IsGenerated(tree) {
			c.files = append(c.files, file{name: name, lines: bytes.Count(text, []byte("\n")), tree: tree})
		}
	}
	config := types.Config{Importer: compiled, FakeImportC: true}
	if len(p.CgoFiles) > 0 { // what cgo adds is in no file here
		config.Error = func(error) {}
	}
	checked, err := config.Check(p.ImportPath, fset, trees, c.info)
	if err != nil && config.Error == nil {
		return code{}, fmt.Errorf("check %s: %w", p.ImportPath, err)
	}
	c.types = checked
	return c, nil
}
