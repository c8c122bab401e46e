package strictyaml_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

type sample struct {
	Name  string           `yaml:"name,required"`
	Size  int              `yaml:"size"`
	Ratio float64          `yaml:"ratio"`
	On    bool             `yaml:"on"`
	List  []string         `yaml:"list"`
	Inner *inner           `yaml:"inner"`
	Map   map[string]inner `yaml:"map"`
	Wait  wait             `yaml:"wait"`
}

type inner struct {
	Deep float64 `yaml:"deep"`
}

type wait time.Duration

func (w *wait) DecodeYAML(n *strictyaml.Node) {
	d, err := time.ParseDuration(n.Text())
	if err != nil {
		n.Problemf("found %q: want a duration such as 20ms", n.Text())
	}
	*w = wait(d)
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const text = "\ufeff# a comment\r\nname: x\r\nsize: 3\nratio: 1e-4\non: true\nlist:\n- a\n- 'b c'\ninner: {deep: 2}\nmap: {\"a.b\": {deep: .5}}\nwait: 20ms\n"
	var got sample
	d, err := strictyaml.Decode("f.yaml", []byte(text), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := sample{Name: "x", Size: 3, Ratio: 1e-4, On: true, List: []string{"a", "b c"}, Inner: &inner{2},
		Map: map[string]inner{"a.b": {0.5}}, Wait: wait(20 * time.Millisecond)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		path []any
		want string
	}{
		{nil, "2:1"},
		{[]any{"name"}, "2:7"},
		{[]any{"list", 1}, "8:3"},
		{[]any{"list", 7}, "7:1"},
		{[]any{"map", "a.b", "deep"}, "10:21"},
		{[]any{"map", "c"}, "10:6"},
	} {
		line, column := d.Position(c.path...)
		if at := fmt.Sprintf("%d:%d", line, column); at != c.want {
			t.Errorf("%v is at %s, want %s", c.path, at, c.want)
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 33) + strings.Repeat("]", 33)
	for _, c := range []struct{ text, want string }{
		{"name: x\nsise: 3\n", `2:1 unknown key "sise" (did you mean "size"?): want name, size, ratio, on, list, inner, map, wait`},
		{"name: x\nzzzzzz: 3\n", `2:1 unknown key "zzzzzz": want name, size, ratio, on, list, inner, map, wait`},
		{"size: 3\n", `1:1 key "name" is missing`},
		{"", `1:1 found nothing: want a mapping with the keys name, size, ratio, on, list, inner, map, wait`},
		{"- a\n", `1:1 found a list: want a mapping with the keys name, size, ratio, on, list, inner, map, wait`},
		{"name: x\nname: y\n", `2:1 key "name" is here twice: the first is in line 1`},
		{"name: 11.10\n", `1:7 found "11.10": want text, so put it in quotes: "11.10"`},
		{"name: x\nsize: 1.5\n", `2:7 found "1.5": want a whole number`},
		{"name: x\nsize: 0x10\n", `2:7 found "0x10": want a whole number`},
		{"name: x\nsize: '1'\n", `2:7 found "1": want a whole number`},
		{"name: x\nratio: .inf\n", `2:8 found ".inf": want a number`},
		{"name: x\nratio: 1e999\n", `2:8 found "1e999": want a number`},
		{"name: x\non: yes\n", `2:5 found "yes": want true or false`},
		{"name: x\nlist: a\n", `2:7 found "a": want a list`},
		{"name: x\nlist:\n", `2:1 found nothing: want a list`},
		{"name: x\ninner: {deeep: 1}\n", `2:9 unknown key "deeep" (did you mean "deep"?): want deep`},
		{"name: x\nwait: soon\n", `2:7 found "soon": want a duration such as 20ms`},
		{"name: &a x\n", `1:7 anchors are not read: write the value at each place`},
		{"name: *a\n", `1:7 aliases are not read: write the value at each place`},
		{"name: !!str 1\n", `1:7 tags are not read: write the value without '!'`},
		{"<<: {a: 1}\n", `1:1 merge keys are not read: write the keys where they are needed`},
		{"%YAML 1.2\n---\nname: x\n", `1:1 directives are not read: remove the line`},
		{"name: x\n---\nname: y\n", `3:1 a second document: want one in a file`},
		{"name: x\n...\nname: y\n", `3:1 a second document: want one in a file`},
		{"name: x\nlist: [a,\n", `2:7 sequence end token ']' not found`},
		{"name: \xff\n", `1:7 this is not UTF-8 text`},
		{"name: \x00\n", `1:7 control character U+0000: want text`},
		{"list: " + deep, `1:38 nested too deeply: want at most 32 levels`},
		{strings.Repeat("- ", 40), `1:65 nested too deeply: want at most 32 levels`},
		{strings.Repeat(" ", strictyaml.MaxBytes+1), fmt.Sprintf("1:1 the file has %d bytes: want at most %d", strictyaml.MaxBytes+1, strictyaml.MaxBytes)},
		{"? [a, b]\n: c\nname: x\n", `2:1 found an invalid key for this map`},
		{"name: |\n" + strings.Repeat("\n", 5000), "2001:1 the file has 5002 lines: want at most 2000"},
		{"nam: x\nsize: big\n", `1:1 unknown key "nam" (did you mean "name"?): want name, size, ratio, on, list, inner, map, wait
2:7 found "big": want a whole number`},
	} {
		var into sample
		d, err := strictyaml.Decode("f.yaml", []byte(c.text), &into)
		if diff := cmp.Diff(c.want, problems(t, err)); diff != "" {
			t.Errorf("%.60q: %s", c.text, diff)
		}
		if d != nil {
			t.Errorf("%.60q: a document in spite of the error", c.text)
		}
	}
}

// problems lists what an error of the package holds, a line for each.
func problems(t *testing.T, err error) string {
	t.Helper()
	var all *strictyaml.Error
	if !errors.As(err, &all) || registry.CodeOf(err) != registry.CodeInvalid {
		t.Fatalf("error %v (%T): want CodeInvalid around *strictyaml.Error", err, err)
	}
	var lines []string
	for _, p := range all.Problems {
		lines = append(lines, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message))
	}
	return strings.Join(lines, "\n")
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	var into sample
	_, err := strictyaml.Decode("dir/f.yaml", []byte("name: x\n  \nsise: 3\u009b # c\non: 1\n"), &into)
	want := `dir/f.yaml:3:1: unknown key "sise" (did you mean "size"?): want name, size, ratio, on, list, inner, map, wait
    sise: 3` + "�" + ` # c
dir/f.yaml:4:5: found "1": want true or false
    on: 1`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, strictyaml.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := strictyaml.ReadFile(large); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a large file: %v", err)
	}
	if _, err := strictyaml.ReadFile(dir); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "found a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := strictyaml.ReadFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "name: x\nlist: [a, 'b']\n", "? a\n: b\n", "a: |\n  x\n",
		"{a: {b: [}", "a: \"\\u00e9\"", "- - - a", "\t", "---\n...\n", "a: &b *c", "|"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		var into sample
		d, err := strictyaml.Decode("f.yaml", data, &into)
		if (d == nil) == (err == nil) {
			t.Fatalf("document %v and error %v", d, err)
		}
		if err == nil {
			if line, column := d.Position("list", 0); line < 1 || column < 1 {
				t.Errorf("position %d:%d", line, column)
			}
			return
		}
		if problems(t, err) == "" || !strings.HasPrefix(err.Error(), "f.yaml:") {
			t.Errorf("error %v", err)
		}
	})
}
