package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageIsCurrent checks that docs/reference/messages.md has the messages of the source, and some of each kind.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/reference/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/messages.md is not current: make generate")
	}
	for _, line := range []string{
		"- `unknown toolchain", // a problem of a spec
		"- `target …: … lacks operators of the model: …` (2) hint: `give this target toolchain:", // with a hint
		"- `calibration gives … the range from",                                                  // of a driver
		"(8)",
		"[more](../troubleshooting.md#",
	} {
		if !strings.Contains(string(want), line) {
			t.Errorf("the page lacks %q", line)
		}
	}
}

// TestCollect checks how calls become entries.
func TestCollect(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]Message{
		`registry.Errorf(registry.CodeInvalid, "%s: want %d%% of %.40q", a, b, c)`:                   {Text: "…: want …% of …", Exit: "2"},
		`registry.WithHint(registry.Errorf(registry.CodeTrust, "two words"), "try " + x + " again")`: {Text: "two words", Exit: "5", Hint: "try … again"},
		`registry.Lastingf(registry.CodeUnavailable, "is not there")`:                                {Text: "is not there", Exit: "1"},
		`registry.WithHint(err, "run %s again", name)`:                                               {Hint: "run … again"},
		`registry.Errorf(registry.CodeOf(err), "read the file: %w", err)`:                            {Text: "read the file: …"},
		`append(d.notes, fmt.Sprintf("left %q out", name))`:                                          {Text: "left … out", Exit: "warning"},
		`c.problem(at("a"), "unknown word %q", w)`:                                                   {Text: "unknown word …", Exit: "2"},
		`command.Usage(c, fmt.Errorf("want a file"))`:                                                {Text: "want a file", Exit: "2"},
		`registry.Errorf(registry.CodeInternal, "a fault of ours")`:                                  {},
		`registry.Errorf(registry.CodeInvalid, "%s: %w", a, err)`:                                    {},
		`fmt.Errorf("has no code at all")`:                                                           {},
	} {
		e, err := parser.ParseExpr(source)
		if err != nil {
			t.Fatal(err)
		}
		r := reader{codes: map[string]string{"CodeInvalid": "2", "CodeTrust": "5", "CodeUnavailable": "9"}, hinted: make(map[*ast.CallExpr]bool)}
		ast.Inspect(e, r.visit)
		var got Message
		if len(r.found) > 0 {
			got = r.found[0]
		}
		if got != want || len(r.found) > 1 {
			t.Errorf("%s: %+v, want %+v", source, r.found, want)
		}
	}
}

// TestDrivers checks what is taken from a program in Python.
func TestDrivers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, drivers, "some")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := "raise Refused(\"bad_input\", f\"node {name!r} is \"\n    \"not there: {kept}\")\nraise Refused(\"bad_input\", text)\n"
	if err := os.WriteFile(filepath.Join(dir, "driver.py"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readDrivers(root)
	if err != nil || len(got) != 1 || len(got[0].Messages) != 1 || got[0].Messages[0].Text != "node … is not there: {kept}" {
		t.Errorf("%+v, %v", got, err)
	}
}
