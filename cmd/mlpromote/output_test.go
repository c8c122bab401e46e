package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

var outputSchemaFile = filepath.Join("..", "..", "docs", "reference", "output.schema.json")

// verbs are the commands that do something, by name: "history list".
func verbs() map[string]*cobra.Command {
	all := make(map[string]*cobra.Command)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Runnable() && !isGroup(c) {
			all[verbName(c)] = c
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(root(silentApp()))
	return all
}

func silentApp() *program.App {
	return &program.App{UI: ui.NewPlain("mlpromote", io.Discard, io.Discard), Getenv: func(string) string { return "" }}
}

func verbName(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), "mlpromote ")
}

// isGroup reports whether a command only holds others.
func isGroup(c *cobra.Command) bool { return c.HasSubCommands() && !strings.Contains(c.Use, " ") }

// The schema that is published is that of the code, and it has every verb.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	want, err := outputSchemaText()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(outputSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says: run go generate ./cmd/mlpromote", outputSchemaFile)
	}
	if got, want := slices.Sorted(maps.Keys(documents())), slices.Sorted(maps.Keys(verbs())); !slices.Equal(got, want) {
		t.Errorf("documents are of\n%q, want those of all verbs\n%q", got, want)
	}
}

// Types that the schema names without their package have different names.
func TestOutputTypesDiffer(t *testing.T) {
	t.Parallel()
	seen, byName := make(map[reflect.Type]bool), make(map[string]reflect.Type)
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(of.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[of] {
			return
		}
		seen[of] = true
		if slices.Contains(unprefixed(), of.PkgPath()) {
			if other, ok := byName[of.Name()]; ok {
				t.Errorf("%s and %s have one name in the schema", of, other)
			}
			byName[of.Name()] = of
		}
		for i := range of.NumField() {
			visit(of.Field(i).Type)
		}
	}
	for _, types := range documents() {
		for _, of := range types {
			visit(of)
		}
	}
	if len(byName) < 20 {
		t.Errorf("found %d types, want at least 20: does unprefixed list the packages of verbs?", len(byName))
	}
}

// publishedSchemas compiles the definition of a verb.
var publishedSchemas = struct {
	sync.Mutex
	byVerb map[string]*jsonschema.Schema
}{byVerb: make(map[string]*jsonschema.Schema)}

func publishedSchema(verb string) (*jsonschema.Schema, error) {
	publishedSchemas.Lock()
	defer publishedSchemas.Unlock()
	if s := publishedSchemas.byVerb[verb]; s != nil {
		return s, nil
	}
	path, err := filepath.Abs(outputSchemaFile)
	if err != nil {
		return nil, err
	}
	s, err := jsonschema.NewCompiler().Compile("file://" + path + "#/$defs/" + strings.ReplaceAll(verb, " ", "%20"))
	publishedSchemas.byVerb[verb] = s
	return s, err
}

// checkOutput holds what a command line printed against the published schema: documents
// with an error exactly where it failed.
func checkOutput(args []string, stdout string, exit int) error {
	verb, _, err := root(silentApp()).Find(args)
	if err != nil {
		return err
	}
	name := verbName(verb)
	if _, ok := documents()[name]; !ok {
		name = "version" // any verb has the form of failures
	}
	schema, err := publishedSchema(name)
	if err != nil {
		return err
	}
	documents, err := split(stdout)
	if err != nil {
		return err
	}
	if len(documents) != 1 && !streaming()[name] {
		return fmt.Errorf("%d documents, want one:\n%s", len(documents), stdout)
	}
	for n, document := range documents {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return err
		}
		if err := schema.Validate(value); err != nil {
			return err
		}
		object, _ := value.(map[string]any)
		if _, failed := object["error"]; failed != (exit != 0 && n == len(documents)-1) {
			return fmt.Errorf("want the key error where the exit code is not 0, and only there:\n%s", document)
		}
	}
	return nil
}

// split gives the documents of a text.
func split(text string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		var one json.RawMessage
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

// streaming are the verbs that print documents as they come.
func streaming() map[string]bool { return map[string]bool{"serve": true} }

// Every verb has an example, and each is a command line that it takes.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, verb := range verbs() {
		if verb.Example == "" {
			t.Errorf("mlpromote %s has no example", name)
		}
		for line := range strings.Lines(strings.ReplaceAll(verb.Example, "\\\n", " ")) {
			for _, args := range commandLines(line) {
				checkExample(t, name, args)
			}
		}
	}
}

// checkExample has a command line parsed as it would be before it is run.
func checkExample(t *testing.T, name string, args []string) {
	t.Helper()
	verb, rest, err := root(silentApp()).Find(args)
	if err != nil {
		t.Errorf("the example of %s: %q: %v", name, args, err)
		return
	}
	err = verb.ParseFlags(rest)
	if err == nil {
		err = verb.ValidateArgs(verb.Flags().Args())
	}
	if err == nil && verb.PreRunE != nil {
		err = verb.PreRunE(verb, verb.Flags().Args())
	}
	if err != nil {
		t.Errorf("the example of %s: %q: %v", name, args, err)
	}
}

// commandLines are the arguments of mlpromote in a line of a shell script.
func commandLines(line string) [][]string {
	var all [][]string
	for _, part := range programName.Split(line, -1)[1:] {
		part, _, _ = strings.Cut(part, ")")
		part, _, _ = strings.Cut(part, " > ")
		part, _, _ = strings.Cut(part, " | ")
		var args []string
		for _, word := range shellWord.FindAllString(part, -1) {
			args = append(args, strings.Trim(word, `"'`))
		}
		all = append(all, args)
	}
	return all
}

// programName begins a command: not the end of a path.
var programName = regexp.MustCompile(`(?:^|[\s(])mlpromote `)

var shellWord = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)
