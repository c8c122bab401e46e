package main

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// outputSchemaID identifies the schema of what verbs print.
const outputSchemaID = "https://mlpromote.dev/schema/output.schema.json"

// object is a schema or a part of one.
type object = map[string]any

// outputSchema is the JSON Schema (draft 2020-12) of what verbs print with --output json:
// a definition for each verb, by its name.
func outputSchema() object {
	s := schemas{defs: make(object)}
	s.defs["error"] = s.of(reflect.TypeFor[ui.Failure]())
	verbs := make([]any, 0, len(documents()))
	for _, name := range sortedNames(documents()) {
		var forms []any
		for _, t := range documents()[name] {
			forms = append(forms, s.of(t), s.failing(t))
		}
		s.defs[name] = object{"anyOf": append(forms, only("error", s.ref("error")))}
		verbs = append(verbs, s.ref(name))
	}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": outputSchemaID,
		"title":       "what mlpromote prints with --output json",
		"description": "$defs has a definition for each verb, by its name, such as \"promote\" or \"history list\"",
		"$defs":       s.defs, "anyOf": verbs,
	}
}

// schemas makes schemas of types. Types with a name become definitions.
type schemas struct{ defs object }

func (s schemas) ref(name string) object {
	return object{"$ref": "#/$defs/" + strings.ReplaceAll(name, " ", "%20")}
}

func only(key string, schema object) object {
	return object{"type": "object", "properties": object{key: schema}, "required": []string{key}, "additionalProperties": false}
}

// failing is the document of a failure that has a result of type t too, or a part of it.
func (s schemas) failing(t reflect.Type) object {
	if t.Kind() != reflect.Struct {
		failed := only("error", s.ref("error"))
		failed["properties"].(object)["result"] = s.of(t)
		return failed
	}
	properties, _ := s.fields(t)
	properties["error"] = s.ref("error")
	return object{"type": "object", "properties": properties, "required": []string{"error"}, "additionalProperties": false}
}

// special are the schemas of types that write themselves.
func special(t reflect.Type) (object, bool) {
	text := object{"type": "string"}
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}, true
	case reflect.TypeFor[json.RawMessage]():
		return object{}, true
	case reflect.TypeFor[registry.Figure]():
		return object{"anyOf": []any{object{"type": "number"}, object{"enum": []string{"inf", "-inf", "nan"}}}}, true
	case reflect.TypeFor[validators.Dim]():
		return object{"type": []string{"integer", "string"}, "description": "a size, or the name of a size that may vary"}, true
	case reflect.TypeFor[registry.Provider]():
		options := object{"type": "object", "additionalProperties": text}
		return object{"anyOf": []any{text, object{"type": "object", "properties": object{"name": text, "options": options}, "required": []string{"name", "options"}}}}, true
	}
	return nil, false
}

// of gives the schema of a type as encoding/json writes it.
func (s schemas) of(t reflect.Type) object {
	if schema, ok := special(t); ok {
		return schema
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		return s.structure(t)
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Interface:
		return object{}
	}
	return object{"type": "integer"}
}

// structure is a struct: a reference to its definition where it has a name.
func (s schemas) structure(t reflect.Type) object {
	name := path.Base(t.PkgPath()) + "." + t.Name()
	if t.PkgPath() == reflect.TypeFor[schemas]().PkgPath() {
		name = "." + t.Name() // a test knows this package by another name
	}
	if t.Name() == "" || strings.ContainsAny(name, "[]") {
		return s.fieldsOf(t)
	}
	if _, ok := s.defs[name]; !ok {
		s.defs[name] = object{} // a type may be part of itself
		s.defs[name] = s.fieldsOf(t)
	}
	return s.ref(name)
}

func (s schemas) fieldsOf(t reflect.Type) object {
	properties, required := s.fields(t)
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// fields are the properties of a struct, with those of embedded ones, and which of them are
// always there.
func (s schemas) fields(t reflect.Type) (properties object, required []string) {
	properties, required = make(object), []string{}
	always := make(map[string]bool)
	for _, f := range reflect.VisibleFields(t) {
		key, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" || !f.IsExported() || key == "-" {
			continue
		}
		if key == "" {
			key = f.Name
		}
		if _, ok := properties[key]; ok && len(f.Index) > 1 {
			continue // one that lies nearer has the name
		}
		properties[key] = s.of(f.Type)
		if f.Type.Kind() == reflect.Pointer && rest == "" {
			properties[key] = object{"anyOf": []any{properties[key], object{"type": "null"}}}
		}
		always[key] = !strings.Contains(rest, "omit")
	}
	for _, key := range sortedNames(always) {
		if always[key] {
			required = append(required, key)
		}
	}
	return properties, required
}
