package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// object is a JSON object.
type object = map[string]any

// schemas are the JSON Schemas (2020-12) of types, with the named ones by name.
type schemas struct{ named object }

// of returns the schema of a value's type.
func (s *schemas) of(value any) object { return s.typed(reflect.TypeOf(value)) }

func (s *schemas) typed(t reflect.Type) object {
	if known := special(t); known != nil {
		return known
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.typed(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": s.typed(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.typed(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	}
	return object{} // any value
}

// special returns the schemas of types with custom JSON encodings.
func special(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[registry.Digest]():
		return object{"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|)$"}
	case reflect.TypeFor[history.EventKind]():
		return enum(history.WebhookKinds())
	case reflect.TypeFor[evidence.Role]():
		return enum(evidence.KeyRoles())
	}
	return nil
}

func enum[T ~string](values []T) object {
	var list []any
	for _, v := range values {
		list = append(list, string(v))
	}
	return object{"type": "string", "enum": list}
}

// structure registers the schema of a struct and returns a reference to it.
func (s *schemas) structure(t reflect.Type) object {
	name := typeName(t)
	reference := object{"$ref": "#/components/schemas/" + name}
	if _, known := s.named[name]; known {
		return reference
	}
	schema := object{"type": "object"}
	s.named[name] = schema // before its fields, because a type can contain itself
	properties, required := object{}, []any{}
	s.fields(t, properties, &required)
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return reference
}

// fields adds the fields of a struct that encoding/json writes.
func (s *schemas) fields(t reflect.Type, properties object, required *[]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && tag == "":
			s.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		}
		schema := s.typed(f.Type)
		if strings.Contains(options, "omit") {
			properties[name] = schema
			continue
		}
		*required = append(*required, name)
		if kind := f.Type.Kind(); (kind == reflect.Slice || kind == reflect.Map) && special(f.Type) == nil {
			schema["type"] = []any{schema["type"], "null"} // encoding/json writes null for nil
		}
		properties[name] = schema
	}
}

// typeName is the name of a type, without packages: "Head", "NamedNode".
func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[evidence.AttestRequest]() {
		return "Attestation"
	}
	name, argument, _ := strings.Cut(t.Name(), "[")
	argument = strings.TrimSuffix(argument[strings.LastIndexAny(argument, "./")+1:], "]")
	return name + argument
}
