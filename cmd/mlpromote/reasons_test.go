package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/readiness"
)

var (
	codeSection = regexp.MustCompile("(?s)### `([^`]+)`\n\n- \\*\\*Means\\*\\*: \\S.+?\n- \\*\\*Likely\\*\\*: \\S.+?\n- \\*\\*Next\\*\\*: \\S")
	codeHeading = regexp.MustCompile("(?m)^### `([^`]+)`$")
)

// TestEveryCodeHasItsWayOut checks that failures.md has a section for every code of a report, every requirement and every item of the checklist, with
// what it means, the likely cause and the next command, and no section for anything else.
func TestEveryCodeHasItsWayOut(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/how-to/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	want := slices.Concat(reasonCodes(t), policy.Requirements(), []string{"summary"}, readiness.ReadinessNames())
	if len(want) < 60 {
		t.Fatalf("found %d codes, want at least 60", len(want))
	}
	var complete, headings []string
	for _, m := range codeSection.FindAllStringSubmatch(page, -1) {
		complete = append(complete, m[1])
	}
	for _, m := range codeHeading.FindAllStringSubmatch(page, -1) {
		headings = append(headings, m[1])
	}
	for _, code := range want {
		if !slices.Contains(complete, code) {
			t.Errorf("failures.md has no section %q with Means, Likely and Next", code)
		}
	}
	for _, heading := range headings {
		if !slices.Contains(want, heading) {
			t.Errorf("failures.md has a section %q, and no report, requirement or checklist has this code", heading)
		}
	}
}

// reasonCodes collects the constants of reason codes from the packages that judge.
func reasonCodes(t *testing.T) []string {
	t.Helper()
	var codes []string
	for _, folder := range []string{"validators", "pipeline/verify", "pipeline/remedy"} {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "reason") {
					return true
				}
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					code, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					codes = append(codes, code)
				}
				return true
			})
		}
	}
	return codes
}
