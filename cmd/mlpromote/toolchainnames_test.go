package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

// namesToolchains are the places, by the beginnings of their paths, whose code may have the name of a toolchain, and why.
func namesToolchains() map[string]string {
	return map[string]string{
		"pipeline/toolchain/drivers/known.go": "the rows",
		"pipeline/toolchain/ort/":             "the driver of ONNX Runtime in Go",
		"registry/toolchains/":                "the table that is generated from the rows, and the name of the toolchain for reference models",
		"pipeline/spec/sources.go":            "formats of sources, which have the names of their frameworks",
		"pipeline/mlflow/description.go":      "flavors of MLflow, which have the names of their frameworks",
		"pipeline/spec/check_sources.go":      "a name that people write in place of a format",
		"pipeline/spec/quantize.go":           "tools of variants, which a spec names with their methods",
		"validators/format/":                  "kinds of files, which have the names of their frameworks",
		"registry/defaults/":                  "what container images of vendors have",
		"registry/rest/examples.go":           "examples",
		"registry/registrytest/":              "tests",
		"cmd/mlpromote/internal/programtest/": "tests",
		"tools/toolchainstable/":              "models to measure, with the toolchains for them",
	}
}

// A toolchain is named in its row and in its driver. Code that has to know something of a toolchain reads it from the row, so that
// a further toolchain needs no change there.
func TestToolchainsAreNamedInTheirRows(t *testing.T) {
	t.Parallel()
	root, names, used := programtest.Root(), drivers.Names(), make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata" || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, found := range quotedIn(t, path, names) {
			place := excused(filepath.ToSlash(relative))
			if used[place] = true; place == "" {
				t.Errorf("%s: %s names a toolchain: add what is needed of it to the rows in pipeline/toolchain/drivers/known.go", relative, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range namesToolchains() {
		if !used[place] {
			t.Errorf("%s: no toolchain is named there: remove it from the list of places", place)
		}
	}
}

// excused is the place of the list that a file is in, or "".
func excused(file string) string {
	for place := range namesToolchains() {
		if strings.HasPrefix(file, place) {
			return place
		}
	}
	return ""
}

// quotedIn lists the string literals of a Go file that are some of these texts, with their lines.
func quotedIn(t *testing.T, path string, texts []string) []string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(texts, text) {
				found = append(found, strconv.Itoa(files.Position(literal.Pos()).Line)+": "+literal.Value)
			}
		}
		return true
	})
	return found
}
