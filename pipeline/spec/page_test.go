package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

// object is a JSON Schema, or a part of one.
type object = map[string]any

// property is a key of a spec: its schema, and whether its mapping needs it.
type property struct {
	schema   object
	required bool
}

// properties adds the keys below a schema to all, by their path. It skips parts that the page
// describes elsewhere.
func properties(schema object, path string, all map[string]property) {
	forms, ok := schema["anyOf"].([]any)
	if !ok {
		forms = []any{schema}
	}
	for _, f := range forms {
		form := f.(object)
		keys, _ := form["properties"].(object)
		for key, value := range keys {
			name := strings.TrimPrefix(path+"."+key, ".")
			required, _ := form["required"].([]any)
			all[name] = property{value.(object), slices.Contains(required, any(key))}
			if name != "limits.precisions.NAME.outputs" && name != "tune.variants" {
				properties(value.(object), name, all)
			}
		}
		if items, ok := form["items"].(object); ok {
			properties(items, path, all)
		}
		if values, ok := form["additionalProperties"].(object); ok {
			properties(values, path+".NAME", all)
		}
	}
}

// typeOf is the type of a value in the page's words.
func typeOf(schema object) string {
	if words, ok := schema["enum"].([]any); ok {
		var all []string
		for _, w := range words {
			all = append(all, fmt.Sprintf("`%v`", w))
		}
		return strings.Join(all, ", ")
	}
	if forms, ok := schema["anyOf"].([]any); ok {
		var all []string
		for _, f := range forms {
			if t := typeOf(f.(object)); !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		return strings.Join(all, " or ")
	}
	switch schema["type"] {
	case "string":
		return textType(fmt.Sprint(schema["pattern"]))
	case "array":
		return "list of " + plural(typeOf(schema["items"].(object)))
	}
	return map[string]string{"integer": "whole number", "number": "number", "boolean": "true or false", "object": "mapping"}[fmt.Sprint(schema["type"])]
}

func textType(pattern string) string {
	switch {
	case strings.Contains(pattern, "(ns|us|"):
		return "time"
	case strings.HasSuffix(pattern, "%$"):
		return "percentage"
	case strings.Contains(pattern, "KMGT"):
		return "size"
	case pattern == `^[^/\\]`:
		return "path"
	}
	return "text"
}

func plural(t string) string {
	switch t {
	case "text", "path", "whole number", "number", "mapping":
		return t + "s"
	case "whole number or text":
		return "whole numbers or texts"
	case "text or mapping":
		return "texts or mappings"
	}
	return strings.NewReplacer("list of", "lists of", "or mapping", "or mappings").Replace(t)
}

var pageRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+?) \\| (.+?) \\| `(.+?)` \\| (.*) \\|$")

// The pages docs/reference/spec*.md agree with the schema: every key has its type, meaning and
// whether it is needed, and an example that the schema accepts.
func TestPage(t *testing.T) {
	t.Parallel()
	data, err := spec.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]property)
	properties(schema, "", keys)
	pages, err := filepath.Glob("../../docs/reference/spec*.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, pageRow.FindAllStringSubmatch(string(text), -1)...)
	}
	seen := make(map[string]bool)
	for _, m := range rows {
		name, kind, fallback, example, meaning := m[1], m[2], m[3], m[4], strings.ReplaceAll(m[5], `\|`, "|")
		p, ok := keys[name]
		if !ok || seen[name] {
			t.Errorf("spec.md has %s, which is not a key or is there twice", name)
			continue
		}
		seen[name] = true
		if want := typeOf(p.schema); kind != want {
			t.Errorf("%s is a %s in spec.md, want %s", name, kind, want)
		}
		if meaning != p.schema["description"] {
			t.Errorf("%s: spec.md says %q, want %q", name, meaning, p.schema["description"])
		}
		if (fallback == "needed") != p.required {
			t.Errorf("%s: spec.md says that the default is %q; needed is %t", name, fallback, p.required)
		}
		if err := accepts(p.schema, example); err != nil {
			t.Errorf("%s: the example %s: %v", name, example, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if !seen[name] {
			t.Errorf("spec.md has no %s", name)
		}
	}
}

// accepts reports whether a schema accepts a value in YAML.
func accepts(schema object, text string) error {
	value, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("key.json", schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile("key.json")
	if err != nil {
		return err
	}
	return compiled.Validate(instance)
}

// The example on the page is a valid spec.
func TestPageExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("spec.md has no example")
	}
	if err := validate(t, compiled(t), text); err != nil {
		t.Error(err)
	}
}
