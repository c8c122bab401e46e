// Package schemas has all JSON Schemas that mlpromote prints or publishes, but that of a spec: of what verbs print, of
// signed predicates, and of environments.yaml.
package schemas

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/predicates"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/typeschema"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// outputID identifies the schema of what verbs print.
const outputID = "https://mlpromote.dev/schema/output.schema.json"

// object is a schema or a part of one.
type object = typeschema.Object

// EnvironmentsFile is the name under which editors find the schema of environments.yaml.
const EnvironmentsFile = environments.SchemaFile

// Environments returns the schema of environments.yaml.
func Environments() []byte { return environments.Schema() }

// Predicate returns the schema of a signed predicate. Errors: CodeInvalid for an unknown name.
func Predicate(name string) ([]byte, error) { return predicates.Schema(name) }

// Predicates lists the names of predicates that have a schema.
func Predicates() []string { return predicates.Names() }

// Output returns the schema of what verbs print with --output json: a definition for each verb, by its name.
// documents are the types that each verb prints; types of the packages in unprefixed have names without a package.
func Output(documents map[string][]reflect.Type, unprefixed ...string) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(output(documents, unprefixed))
	return out.Bytes(), err
}

func output(documents map[string][]reflect.Type, unprefixed []string) object {
	w := typeschema.Writer{Defs: make(object), Types: outputTypes(), Unprefixed: unprefixed}
	w.Defs["error"] = w.Of(reflect.TypeFor[ui.Failure]())
	verbs := make([]any, 0, len(documents))
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		var forms []any
		for _, t := range documents[name] {
			forms = append(forms, w.Of(t), failing(w, t))
		}
		w.Defs[name] = object{"anyOf": append(forms, only("error", typeschema.Ref("error")))}
		verbs = append(verbs, typeschema.Ref(name))
	}
	return object{
		"$schema": typeschema.Draft, "$id": outputID,
		"title":       "what mlpromote prints with --output json",
		"description": "$defs has a definition for each verb, by its name, such as \"promote\" or \"history list\"",
		"$defs":       w.Defs, "anyOf": verbs,
	}
}

func only(key string, schema object) object {
	return object{"type": "object", "properties": object{key: schema}, "required": []string{key}, "additionalProperties": false}
}

// failing is the document of a failure that has a result of type t too, or a part of it.
func failing(w typeschema.Writer, t reflect.Type) object {
	if t.Kind() != reflect.Struct {
		failed := only("error", typeschema.Ref("error"))
		failed["properties"].(object)["result"] = w.Of(t)
		return failed
	}
	properties, _ := w.Properties(t)
	properties["error"] = typeschema.Ref("error")
	return object{"type": "object", "properties": properties, "required": []string{"error"}, "additionalProperties": false}
}

// outputTypes are the schemas of types that write themselves.
func outputTypes() map[reflect.Type]object {
	text := object{"type": "string"}
	options := object{"type": "object", "additionalProperties": text}
	provider := object{"type": "object", "properties": object{"name": text, "options": options}, "required": []string{"name", "options"}}
	return map[reflect.Type]object{
		reflect.TypeFor[evidence.Figure]():   {"anyOf": []any{object{"type": "number"}, object{"enum": []string{"inf", "-inf", "nan"}}}},
		reflect.TypeFor[validators.Dim]():    {"type": []string{"integer", "string"}, "description": "a size, or the name of a size that may vary"},
		reflect.TypeFor[artifact.Provider](): {"anyOf": []any{text, provider}},
	}
}

// DefaultRules is the environments.yaml that init writes.
func DefaultRules() []byte { return environments.Default() }
